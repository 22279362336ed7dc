"""nanquest mute: what matches is counted, neither written nor told; the rest is as ever; a policy acts all the same."""

import json

from attached import PROGRAMS, AttachTest, main

MANY, MLP = PROGRAMS / "many.py", PROGRAMS / "mlp.py"


class MuteTest(AttachTest):
    def mute(self, *arguments, code=0):
        process = self.nanquest("mute", *arguments, NANQUEST_BIN=str(self.bin))
        self.assert_exit(process, code)
        return process

    def setUp(self):
        super().setUp()
        from attached import BIN
        self.bin = BIN

    def test_a_place_is_muted_and_heard_again(self):
        def run(run_dir, *options):
            process = self.observed(MANY, "2,20", f"{run_dir}.pt", run_dir=run_dir, options=("--level", "watch", *options))
            self.assert_exit(process)
            return process
        run("loud")
        said = self.mute(self.incidents("loud")[0]).stdout
        self.assertIn("aten::addmm in 0, BAD_DATA; while a program runs its cause is not known", said)
        self.assertEqual(self.mute("--list").stdout, "1  aten::addmm in 0, BAD_DATA\n")
        quiet = run("quiet")
        self.assertEqual(self.probes_lines(quiet), ["nanquest: no incident in 40 steps; 2 muted (nanquest mute --list)"])
        self.assertEqual(self.incidents("quiet"), [])
        manifest = json.loads((self.scratch / "quiet" / "manifest.json").read_text())
        self.assertEqual([(each["step"], each["muted"]) for each in manifest["incidents"]], [(2, True), (20, True)])
        import torch
        loud, muted = (torch.load(self.scratch / f"{name}.pt") for name in ("loud", "quiet"))
        for name, value in loud.items():
            self.assertEqual(value.numpy().tobytes(), muted[name].numpy().tobytes(), name)
        # At level trace step 2 is looked at, step 20 is not: it is told.
        self.assert_exit(trace := self.observed(MANY, "2,20", "trace.pt", run_dir="trace"))
        self.assertEqual([file.name for file in self.incidents("trace")], ["step-00000020.r0.h5"])
        self.assertIn("1 incident in 40 steps; 1 muted", trace.stderr)
        self.assertIn("no longer muted: aten::addmm in 0", self.mute("--remove", "1").stdout)
        self.assertEqual(len(run("again") and self.incidents("again")), 2)

    def test_by_a_verdict_and_with_a_policy(self):
        (self.scratch / "verdict.json").write_text(json.dumps({"culprit": {"op": "aten::addmm", "module": "0"}, "cause": "BAD_DATA"}))
        self.mute("verdict.json", "--mute-file", "elsewhere.json")
        process = self.observed(MLP, "sgd", 4, "nan", "weights.pt",
                                options=("--level", "watch", "--mute-file", "elsewhere.json", "--on-incident", "skip"))
        self.assert_exit(process)
        self.assertIn("step 4: batch skipped: policy skip", process.stderr)
        self.assertIn("no incident in 8 steps; 1 muted", process.stderr)

    def test_another_place_and_what_carries_on(self):
        (self.scratch / "verdict.json").write_text(json.dumps({"culprit": {"op": "aten::mm", "module": "0"}, "cause": "BAD_DATA"}))
        self.mute("verdict.json")
        self.assert_exit(self.observed(MLP, "sgd", 4, "nan", options=("--level", "watch")))
        self.assertEqual(len(self.incidents()), 1)
        (self.scratch / "verdict.json").write_text(json.dumps({"culprit": {"op": "aten::addmm", "module": "0"}, "cause": "BAD_DATA"}))
        self.mute("verdict.json")
        process = self.observed(MLP, "sgd", 4, "nan", run_dir="carried", options=("--level", "watch"))
        self.assertEqual(self.probes_lines(process), ["nanquest: no incident in 8 steps; 1 muted (nanquest mute --list)"])

    def test_what_can_not_be(self):
        for arguments, words in (((), "--list"), (("--remove", "3"), "has no number 3"), (("nothing.h5",), "is not there")):
            with self.subTest(words):
                self.assertIn(words, self.mute(*arguments, code=2).stderr)
        (self.scratch / ".nanquest-mute.json").write_text("{")
        self.assertIn("is no list of muted incidents", self.mute("--list", code=2).stderr)
        process = self.observed(MLP, "sgd", 4, "nan", options=("--level", "watch"))
        self.assert_exit(process)
        self.assertIn("nothing is muted: ", process.stderr)
        self.assertEqual(len(self.incidents()), 1)


if __name__ == "__main__":
    main()
