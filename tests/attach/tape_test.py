"""--tape: the steps before an incident are in its file, and run again from it alone, bit for bit; then changed."""

import json
import math
import subprocess

from attached import BIN, PROGRAMS, ROOT, AttachTest, main

PROGRAM, STEPS, KEPT = PROGRAMS / "diverges.py", 30, 8
LONG = 20  # as many as a cure must be seen for, and some


def losses_of(process):
    return {int(step): float(loss) for step, loss in (line.split() for line in process.stdout.splitlines() if " " in line)}


class TapeTest(AttachTest):
    def recorded(self, *options, program=PROGRAM, arguments=(STEPS,)):
        """Of a program that diverges and then goes bad: its output, and the file of its first bad step."""
        process = self.observed(program, *arguments, options=options)
        self.assert_exit(process)
        self.assertTrue(self.incidents(finite=False), process.stderr)
        self.assertNotIn("no tape", process.stderr)
        self.assertNotIn("without its tape", process.stderr)
        return process, self.incidents(finite=False)[0]

    def run_of(self, rehearsal, change):
        return next(run for run in rehearsal["runs"] if run["change"] == change)

    def test_the_incident_is_reached_bit_for_bit_from_many_steps_before(self):
        process, snapshot = self.recorded("--tape", KEPT)
        self.assertEqual(process.stdout, self.plain(PROGRAM, STEPS).stdout)
        bad = int(snapshot.name[5:13])
        self.assertGreater(bad, 2 * KEPT, "the anchors should have taken turns")
        said = self.replay("rewind", snapshot)
        self.assertTrue(said["reached"], said)
        self.assertEqual((said["mismatched"], said["failed_ops"], said["last_step"]), (0, 0, bad), said)
        self.assertGreaterEqual(bad - said["first_step"], KEPT, said)
        self.assertLessEqual(bad - said["first_step"], 2 * KEPT, said)
        self.assertGreater(said["outputs_compared"], 3, said)
        self.assertEqual(self.replay("info", snapshot)["tape"], {"first_step": said["first_step"], "last_step": bad})
        # Weights were stored once, as the anchor found them, and the step alone is as it was.
        self.assert_bit_exact(snapshot)
        # Too few steps to show a cure: that is reported, and no root is named.
        rehearsal = said["rehearsal"]
        self.assertIsNone(rehearsal["root"])
        self.assertIn(f"the tape ends {bad - said['first_step']} steps after the failure", rehearsal["not_tried"])
        self.assertEqual(rehearsal["runs"][0]["failed_step"], bad)
        for run in rehearsal["runs"]:
            self.assertEqual(bool(run["not_tried"]), run["kind"] == "change", run)

    def test_a_smaller_rate_is_what_the_program_does_with_one(self):
        process, snapshot = self.recorded("--tape", LONG)
        bad = int(snapshot.name[5:13])
        changes = ("lr=*0.5", "lr=*0.1", "warmup=7", "clip=1.5")
        said = self.replay("rewind", snapshot, *(word for change in (*changes, "moments=reset") for word in ("--set", change)))
        rehearsal, first = said["rehearsal"], said["first_step"]
        self.assertGreater(bad - first, 16, "too few to see a cure in")
        unchanged, seen = rehearsal["runs"][0], losses_of(process)
        self.assertEqual((unchanged["failed_step"], unchanged["failure"]), (bad, "the loss is infinite"))
        self.assertEqual([f"{loss:.9g}" for loss in unchanged["losses"]], [f"{seen[step]:.9g}" for step in range(first, bad)])
        # The program itself so changed from there on, as far as batches are new to both.
        for change in changes:
            really = losses_of(self.plain(PROGRAM, bad + 1, first, change))
            tried = self.run_of(rehearsal, change)["losses"]
            self.assertGreater(len(tried), 10, change)
            for step in range(first, min(bad, first + len(tried))):
                self.assertTrue(math.isclose(tried[step - first], really[step], rel_tol=1e-3), (change, step, tried[step - first], really[step]))
        cured = self.run_of(rehearsal, "lr=*0.1")
        self.assertTrue(cured["cures"], rehearsal)
        self.assertEqual(cured["remark"], "cures, as far as it went")
        self.assertFalse(self.run_of(rehearsal, "moments=reset")["cures"])
        self.assertEqual(sum(run["kind"] == "placebo" for run in rehearsal["runs"]), 8)
        root = rehearsal["root"]
        self.assertEqual((root["cause"], root["verified"]), ("DIVERGENCE", False), root)
        self.assertIn("lr=*0.1", root["cured"])
        self.assertIn("once more", root["explanation"])
        self.assertEqual(rehearsal["again"], bad + 1)
        # It stands beside the snapshot, and the verdict has it.
        beside = snapshot.with_name(snapshot.name.removesuffix(".h5") + ".rehearsal.json")
        self.assertEqual(json.loads(beside.read_text())["root"], root)
        self.assertEqual(self.replay("diagnose", snapshot, "--no-fixes")["root"]["cause"], "DIVERGENCE")

    def test_a_bad_batch_is_told_from_a_bad_rate(self):
        bad = 45  # its tape begins later than the program, so that there are moments to reset
        _, snapshot = self.recorded("--tape", LONG, program=PROGRAMS / "one_bad_batch.py", arguments=(bad + 3, bad))
        said = self.replay("rewind", snapshot)
        self.assertTrue(said["reached"], said)
        rehearsal = said["rehearsal"]
        self.assertEqual(rehearsal["root"]["cured"], [f"skip={bad}"], rehearsal["root"])
        self.assertEqual(rehearsal["root"]["cause"], "BAD_DATA")
        left_out = self.run_of(rehearsal, f"skip={bad}")
        self.assertIsNone(left_out["losses"][bad - said["first_step"]])
        for change in ("lr=*0.5", "lr=*0.1", "moments=reset", "clip=1"):
            self.assertEqual(self.run_of(rehearsal, change)["failed_step"], bad, change)

    def test_a_spoiled_moment_is_found_with_the_step_that_wrote_it(self):
        for seed in (1, 2):  # one moment; all of them with one operation
            with self.subTest(seed):
                self.clear("run")
                process = self.observed(ROOT / "tests" / "attach" / "roots" / "made.py", "residual", "state", seed, 75, "out.json",
                                        options=("--level", "trace", "--tape", LONG))
                self.assert_exit(process)
                rehearsal = self.replay("rewind", self.incidents()[0], "--placebos", 1)["rehearsal"]
                self.assertEqual((rehearsal["root"]["cause"], rehearsal["root"]["change"]), ("BAD_STATE", "undo=70"), rehearsal)

    def test_what_a_tape_cannot_change_is_said(self):
        _, snapshot = self.recorded("--tape", KEPT)
        for change, words in (("eps=small", "a number of 0 or more is wanted"), ("z-loss=1e-4", "not on a tape"), ("clip=0", "a norm above 0 is wanted"), ("warmup=some", "steps are wanted"), ("lr=0.1", "a factor of them is wanted"), ("skip=3", "a step of the tape is wanted"),
                              ("lr=*0.5,moments=reset", "one change at a time")):
            process = subprocess.run([BIN / "nanquest-replay", "rewind", snapshot, "--set", change], text=True, capture_output=True)
            self.assertEqual(process.returncode, 2, process)
            self.assertIn(words, process.stderr)
            self.assertIn("nanquest rehearse", process.stderr)
        self.assertFalse(list(snapshot.parent.glob("*.rehearsal.json")))

    def test_a_file_without_says_how_to_get_one(self):
        _, snapshot = self.recorded()
        process = subprocess.run([BIN / "nanquest-replay", "rewind", snapshot], text=True, capture_output=True)
        self.assertEqual(process.returncode, 3, process)
        self.assertIn("holds no tape", process.stderr)
        self.assertIn("--tape", process.stderr)

    def test_level_guard_has_none(self):
        process = self.observed(PROGRAM, 1, options=("--level", "guard", "--tape"))
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("tape needs level trace or watch", process.stderr)


if __name__ == "__main__":
    main()
