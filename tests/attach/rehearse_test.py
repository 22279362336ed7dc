"""The root of an incident, tried with the program that had it: by rate, by batch, by number format, or by nothing that was tried."""

import json
import sys

from attached import BIN, PROGRAMS, AttachTest, main, nightly

PROGRAM = PROGRAMS / "rehearsed.py"


class RehearseTest(AttachTest):
    def environment(self, **more):
        return super().environment(**{"NANQUEST_BIN": str(BIN), **more})

    def incident(self, mode, *more):
        """The snapshot of the first bad step in a run of 90 steps."""
        self.observed(PROGRAM, mode, 90, *more, run_dir=mode)
        return self.incidents(mode, finite=False)[0]

    def rehearsed(self, snapshot, mode, *options, program=(), code=0, more=("--placebos", "1")):
        """The process, and the file that it left beside the snapshot."""
        process = self.nanquest("rehearse", snapshot, *more, *options, "--", sys.executable, PROGRAM, mode, 300, *program)
        self.assert_exit(process, code)
        return process, json.loads((snapshot.parent / f"{snapshot.stem}.rehearsal.json").read_text())

    def runs(self, document):
        return {run["change"]: run for run in document["runs"] if run["kind"] == "change"}

    def assert_as_they_are(self, document, step):
        """The unchanged run and the placebos fail where the incident was, and the losses before it are those on record."""
        self.assertEqual((document["format"], document["version"], document["step"]), ("nanquest.rehearsal", 1, step))
        self.assertTrue(document["as_recorded"])
        unchanged, placebo = document["runs"][:2]
        self.assertEqual((unchanged["kind"], unchanged["failed_step"]), ("unchanged", step))
        self.assertEqual(placebo["kind"], "placebo")
        self.assertIn("the last bit of", placebo["change"])
        self.assertNotEqual(placebo["losses"], unchanged["losses"])
        self.assertLessEqual(abs(placebo["failed_step"] - step), 1)
        self.assertEqual(len(unchanged["losses"]), step - unchanged["first_step"])

    def test_a_rate_that_is_too_high(self):
        snapshot = self.incident("rate")
        step = int(snapshot.name[5:13])
        process, document = self.rehearsed(snapshot, "rate", "--set", "lr=*0.5", "--set", f"skip={step}")
        self.assert_as_they_are(document, step)
        runs, root = self.runs(document), document["root"]
        self.assertIsNone(runs["lr=*0.5"]["failed_step"])
        self.assertLess(runs["lr=*0.5"]["losses"][-1], 1)
        self.assertEqual(runs[f"skip={step}"]["failed_step"], step + 1)
        self.assertIsNone(runs[f"skip={step}"]["losses"][-1])  # its update was left out, and that is no good step
        self.assertIn(" grew from ", document["growth"])  # as the snapshot's history tells
        self.assertEqual((root["cause"], root["change"], root["cured"]), ("DIVERGENCE", "lr=*0.5", ["lr=*0.5"]))
        self.assertTrue(root["verified"])
        self.assertGreaterEqual(root["steps"], 64)
        self.assertIn("DIVERGENCE", process.stdout)
        self.assertIn(f"nanquest: the program as it is: step {step}: ", process.stderr)
        self.assertEqual(sorted(p.name for p in snapshot.parent.glob("*.json")), [f"{snapshot.stem}.rehearsal.json"])
        # Later requests for the verdict contain the root.
        verdict = self.replay(snapshot, "--no-fixes")
        self.assertEqual((verdict["root"]["cause"], verdict["root"]["change"]), ("DIVERGENCE", "lr=*0.5"))
        self.assertEqual(verdict["root"]["scope"], "run")
        self.assertEqual(verdict["root"]["file"], f"{snapshot.stem}.rehearsal.json")
        self.assertIn("DIVERGENCE", snapshot.with_name(f"{snapshot.stem}.md").read_text())

    def test_a_bad_batch_after_a_resume(self):
        snapshot = self.incident("batch", "save=state.pt@20")
        _, document = self.rehearsed(snapshot, "batch", "--set", "lr=*0.5", "--set", "skip=40", "--json", program=("resume=state.pt",))
        self.assert_as_they_are(document, 40)
        self.assertEqual(document["runs"][0]["first_step"], 20)
        runs, root = self.runs(document), document["root"]
        self.assertEqual(runs["lr=*0.5"]["failed_step"], 40)
        self.assertIsNone(runs["skip=40"]["failed_step"])
        self.assertEqual((root["cause"], root["change"], root["verified"]), ("BAD_DATA", "skip=40", True))

    @nightly
    def test_steps_that_the_program_does_not_count_are_known_by_their_losses(self):
        """SGD counts no updates."""
        snapshot = self.incident("batch", "optimizer=sgd", "save=state.pt@20")
        process, document = self.rehearsed(snapshot, "batch", "--set", "skip=40", "--steps", "16",
                                           program=("optimizer=sgd", "resume=state.pt"))
        self.assertIn("the command begins with step 20 of the recorded run", process.stderr)
        self.assert_as_they_are(document, 40)
        self.assertEqual(document["root"]["cause"], "BAD_DATA")
        self.assertFalse(document["root"]["verified"])  # 16 steps are too few

    def test_a_format_that_is_too_small(self):
        snapshot = self.incident("half")
        _, document = self.rehearsed(snapshot, "half", "--set", "precision=fp32", "--set", "lr=*0.5", "--set", "momentum=0.5")
        self.assert_as_they_are(document, 40)
        runs, root = self.runs(document), document["root"]
        self.assertEqual(runs["lr=*0.5"]["failed_step"], 40)
        self.assertIn("AdamW has no such setting", runs["momentum=0.5"]["not_tried"])
        self.assertEqual((root["cause"], root["change"], root["tried"]), ("PRECISION", "precision=fp32", ["precision=fp32", "lr=*0.5"]))
        # The proximate cause stands.
        verdict = self.replay(snapshot, "--no-fixes")
        self.assertEqual(verdict["root"]["cause"], verdict["cause"])

    @nightly
    def test_ranks_that_train_together(self):
        torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PROGRAM)
        self.nanquest("run", "--run-dir", "ranks", "--", *torchrun, "batch", 45)
        snapshot = next(path for path in self.incidents("ranks") if path.name == "step-00000040.r1.h5")
        process = self.nanquest("rehearse", snapshot, "--placebos", "1", "--steps", "16", "--set", "lr=*0.5", "--set", "skip=40",
                                "--", *torchrun, "batch", 300)
        self.assert_exit(process)
        document = json.loads((snapshot.parent / "step-00000040.r1.rehearsal.json").read_text())
        self.assert_as_they_are(document, 40)
        self.assertEqual(document["rank"], 1)
        runs = self.runs(document)
        self.assertEqual(runs["lr=*0.5"]["failed_step"], 40)
        self.assertEqual((document["root"]["cause"], document["root"]["change"]), ("BAD_DATA", "skip=40"))

    @nightly
    def test_what_nothing_cures(self):
        snapshot = self.incident("hopeless")
        process, document = self.rehearsed(snapshot, "hopeless", "--set", "lr=*0.5,clip=1.0", "--set", "skip=40", code=1)
        self.assert_as_they_are(document, 40)
        self.assertEqual((document["root"]["cause"], document["root"]["cured"]), ("UNKNOWN", []))
        self.assertEqual(document["root"]["tried"], ["lr=*0.5,clip=1.0", "skip=40"])
        self.assertIn("UNKNOWN", process.stdout)


if __name__ == "__main__":
    main()
