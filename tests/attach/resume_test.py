"""--bad-checkpoint: what a program reads back before its first update, and resumes that are not what was saved."""

import json
import shutil
import unittest

from attached import PROGRAMS, AttachTest, PackagesTest, by_day, importable, main

SAVES = PROGRAMS / "saves"
WEIGHTS = "the loaded weights hold NaN or Inf: 0.weight has 1 NaN in 128 values (1 more tensor is bad) (read from out/"
FORMATS = "exp_avg of 0.weight (11 more) was saved in"
NEW_SCHEDULER = "; the loaded state has 0.01: LambdaLR counts from the beginning, so its state was not loaded"
# Case of resumes.py -> label, first tensor, step, part of the line.
WRONG = {
    "weights": ("BAD_STATE", "0.weight", 0, WEIGHTS + "bad.pt)"),
    "safetensors": ("BAD_STATE", "0.weight", 0, WEIGHTS + "bad.safetensors)"),
    "distributed": ("BAD_STATE", "0.weight", 0, WEIGHTS + "bad-distributed)"),
    "buffer": ("BAD_STATE", "1.running_var", 0, "1.running_var has 1 NaN in 16 values (read from out/buffer.pt)"),
    "moments": ("BAD_STATE", "0.weight", 0, "the loaded state of AdamW holds NaN or Inf: exp_avg_sq of 0.weight has 1 Inf in 128 values"),
    "zero": ("BAD_STATE", "0.weight", 0, "the loaded state of AdamW is all zero (exp_avg, exp_avg_sq) although it counts 20 steps"),
    "half": ("STATE_PRECISION", "0.weight", 0, FORMATS + " float16 and is kept in float32"),
    "narrowed": ("STATE_PRECISION", "0.weight", 0, FORMATS + " float32 and is kept in bfloat16"),
    "rate_kept": ("BAD_STATE", "", 0, "the rate of AdamW is 0.0001; the loaded state has 0.01, which was not kept"),
    "scheduler_made_later": ("BAD_STATE", "", 0, "the rate of AdamW is 0.000625" + NEW_SCHEDULER),
    "scheduler_not_loaded": ("BAD_STATE", "", 1, "the rate of AdamW is 0.00125" + NEW_SCHEDULER),
    "scale": ("BAD_STATE", "loss_scale", 0, "the loss scale begins with nan"),
    "scaler_not_loaded": ("BAD_STATE", "loss_scale", 0, "the loss scale is 65536, and what was read has 4096"),
    "steps": ("BAD_STATE", "0.weight", 0, "the step count of AdamW is 0 for 0.weight, and the loaded state has 20 (read from out/all.pt)"),
    "narrow_steps": ("STATE_PRECISION", "0.weight", 0, "and the loaded state has 20: bfloat16 can't count so far"),
}
HEALTHY = ("all", "fine_tune", "other_rate", "bf16", "rate_by_hand", "loaded_later", "target_network", "only_looked_at",
           "clean_safetensors", "clean_distributed")
BY_DAY = ("distributed", "buffer", "zero", "narrowed", "scheduler_not_loaded", "scaler_not_loaded", "steps")
HEALTHY_BY_DAY = ("all", "fine_tune", "rate_by_hand")


class ResumeTest(AttachTest):
    @classmethod
    def setUpClass(cls):
        cls.saved = cls.shared_folder()

    def setUp(self):
        super().setUp()
        if not (self.saved / "out").exists():
            self.assert_exit(self.plain(SAVES / "resumes.py", "save"))
            shutil.copytree(self.scratch / "out", self.saved / "out")
        elif not (self.scratch / "out").exists():
            shutil.copytree(self.saved / "out", self.scratch / "out")

    def findings(self, run_dir):
        return json.loads((self.scratch / run_dir / "manifest.json").read_text())["findings"]

    def test_what_is_wrong_is_said_once(self):
        for case in by_day(BY_DAY, [case for case in WRONG if case not in BY_DAY]):
            with self.subTest(case=case):
                label, tensor, step, words = WRONG[case]
                process = self.observed(SAVES / "resumes.py", case, run_dir=case)
                self.assert_exit(process)
                rows = self.findings(case)
                self.assertEqual([(row["kind"], row["label"], row["tensor"], row["step"]) for row in rows],
                                 [("bad_load", label, tensor, step)], rows)
                said = [line for line in self.probes_lines(process) if rows[0]["text"] in line]
                self.assertEqual(len(said), 1, process.stderr)
                self.assertIn(words, said[0])
                # Nothing of that step has been said before.
                first = [line for line in self.probes_lines(process) if line.startswith(f"nanquest: step {step}: ")][0]
                self.assertEqual(first, said[0])
                self.assertIn(rows[0]["text"], self.nanquest("explain", case).stdout)

    def test_ordinary_resumes_are_no_finding(self):
        for case in by_day(HEALTHY_BY_DAY, [case for case in HEALTHY if case not in HEALTHY_BY_DAY]):
            with self.subTest(case=case):
                process = self.observed(SAVES / "resumes.py", case, run_dir=case)
                self.assert_exit(process)
                self.assertEqual(self.findings(case), [], process.stderr)

    def test_off_looks_at_nothing(self):
        process = self.observed(SAVES / "resumes.py", "zero", options=("--bad-checkpoint", "off"))
        self.assert_exit(process)
        self.assertEqual(self.findings("run"), [])


class TrainersResumeTest(PackagesTest):
    def resumed(self, trainer, bad, good, *words):
        """A resume from the bad file, and one from the clean one that was made before."""
        self.assert_exit(self.plain(SAVES / "trainers.py", trainer, "all"))
        for file, expected in ((bad, words), (good, ())):
            run_dir = "run-bad" if expected else "run-good"
            process = self.observed(SAVES / "trainers.py", trainer, file, run_dir=run_dir)
            self.assert_exit(process)
            rows = json.loads((self.scratch / run_dir / "manifest.json").read_text())["findings"]
            loads = [row for row in rows if row["kind"] == "bad_load" or not expected]
            self.assertEqual([(row["label"], row["step"]) for row in loads], [("BAD_STATE", 0)] * len(expected), process.stderr)
            for row, each in zip(sorted(loads, key=lambda row: row["text"]), expected):
                self.assertIn(each, row["text"])
                self.assertIn(row["text"], process.stderr)

    @unittest.skipUnless(importable("transformers") and importable("accelerate"), "transformers or accelerate is not installed")
    def test_huggingface(self):
        self.resumed("huggingface", "out/checkpoint-6", "out/checkpoint-4",
                     "transformer.h.1.mlp.c_fc.weight has 1 NaN in 1024 values (read from out/checkpoint-6/model.safetensors)")

    @unittest.skipUnless(importable("lightning") or importable("pytorch_lightning"), "lightning is not installed")
    def test_lightning(self):
        self.resumed("lightning", "out/epoch=0-step=6.ckpt", "out/epoch=0-step=4.ckpt",
                     "exp_avg of net.0.weight has 128 NaN in 128 values (7 more tensors are bad) (read from out/epoch=0-step=6.ckpt)",
                     "net.0.weight has 128 NaN in 128 values (3 more tensors are bad) (read from out/epoch=0-step=6.ckpt)")


if __name__ == "__main__":
    main()
