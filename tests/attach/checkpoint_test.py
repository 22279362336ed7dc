"""--bad-checkpoint: what a program writes is looked at as it goes out."""

import json
import os
import unittest

from attached import PROGRAMS, AttachTest, PackagesTest, by_day, importable, main

SAVES = PROGRAMS / "saves"
# Which ways of every_way.py write what was spoiled.
HOLDS = {
    "weight": {"weights", "half", "model", "all", "safetensors", "distributed", "buffer", "opened"},
    "average": {"all", "average", "shadow", "distributed"},
    "moment": {"all", "optimizer", "opened"},
}
HOLDS["batch"] = HOLDS["weight"] | HOLDS["average"] | HOLDS["moment"]
FILE = {way: f"{way}-4" for way in HOLDS["batch"]} | {"optimizer": "folder-4", "safetensors": "weights-4.safetensors"}


class CheckpointTest(AttachTest):
    def findings(self, run_dir="run"):
        return json.loads((self.scratch / run_dir / "manifest.json").read_text())["findings"]

    def ways_of(self, findings):
        found = set()
        for row in findings:
            self.assertEqual((row["kind"], row["label"], row["rank"]), ("bad_checkpoint", "BAD_STATE", 0), row)
            name = row["file"].split("out/")[1].split("/")[0]
            exact = [way for way, file in FILE.items() if name == file]
            found.add(*exact or [way for way, file in FILE.items() if name.rpartition(".")[0] == file])
        return found

    def test_every_way_with_everything_that_may_be_bad(self):
        for spoiled in by_day(("weight", "moment"), ("average", "batch", "nothing")):
            with self.subTest(spoiled=spoiled):
                process = self.observed(SAVES / "every_way.py", spoiled, run_dir=f"run-{spoiled}")
                self.assert_exit(process)
                rows = self.findings(f"run-{spoiled}")
                self.assertEqual(self.ways_of(rows), HOLDS.get(spoiled, set()))
                self.assertEqual(len(rows), len(HOLDS.get(spoiled, ())), rows)
                for row in rows:
                    self.assertIn("last clean file: out/", row["text"])
                    self.assertIn("-2", row["text"].rpartition("last clean file: ")[2])
                said = [line for line in self.probes_lines(process) if "holds NaN or Inf: " in line]
                self.assertEqual(len(said), min(len(rows), 3), process.stderr)
                self.assertEqual(bool(rows), f"; {len(rows)} findings" in process.stderr, process.stderr)
                self.assertEqual(bool(rows), f" (nanquest explain run-{spoiled})" in process.stderr, process.stderr)

    def test_step_and_operation_are_named(self):
        process = self.observed(SAVES / "every_way.py", "weight")
        self.assertRegex(process.stderr, r"nanquest: step 3: out/weights-4.pt holds NaN or Inf: 2.weight has 1 NaN in 16 values, "
                                         r"last written by aten::fill_ in step 3; last clean file: out/weights-2.pt\n")
        shown = self.nanquest("explain", "run")
        self.assertEqual(shown.returncode, 1)
        self.assertIn("out/weights-4.pt holds NaN or Inf: 2.weight has 1 NaN", shown.stdout)
        listed = json.loads(self.nanquest("explain", "run", "--json").stdout)["findings"]
        self.assertEqual(len(listed), len(HOLDS["weight"]))

    def test_refused_writes_leave_the_old_files(self):
        process = self.observed(SAVES / "every_way.py", "batch", options=("--bad-checkpoint", "refuse"))
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(process.stderr, r"nanquest[.\w]*.BadCheckpoint: out/weights-4.pt is not written: 0.weight has 128 NaN in 128 values")
        self.assertFalse((self.scratch / "out" / "weights-4.pt").exists())
        self.assertEqual(len(self.findings()), 1)

    def test_rotation_keeps_the_last_clean_file(self):
        process = self.observed(SAVES / "every_way.py", "batch", "on", options=("--bad-checkpoint", "refuse"))
        self.assert_exit(process)
        refused = {line.split()[1]: line.split()[2] for line in process.stdout.splitlines() if line.startswith("refused")}
        self.assertEqual(set(refused), HOLDS["batch"])
        self.assertEqual(set(refused.values()), {"BadCheckpoint", "CheckpointException"})
        left = process.stdout.splitlines()[-1].split()[1:]
        self.assertIn("weights-2.pt", left)
        self.assertIn("folder-2", left)
        self.assertNotIn("all-1.pt", left)  # all-2.pt is newer, and clean
        self.assertTrue((self.scratch / "out" / "folder-2" / "optimizer.pt").exists())
        self.assertIn("nanquest: out/weights-2.pt stays, although the program wants to remove it", process.stderr)
        self.assertEqual([name for name in left if "-4" in name and name not in ("folder-4", "opened-4.pt", "distributed-4")], [])

    def test_infinities_on_purpose_are_no_finding(self):
        process = self.observed(SAVES / "look_alikes.py")
        self.assert_exit(process)
        self.assertEqual(self.findings(), [], process.stderr)
        self.assertEqual(self.incidents(), [], process.stderr)

    def test_large_files_are_looked_at_while_they_are_written(self):
        for option, threads in (("say", ["nanquest-counting"] * 4), ("refuse", [])):
            with self.subTest(option=option):
                process = self.observed(SAVES / "large.py", run_dir=option, options=("--bad-checkpoint", option))
                self.assertEqual(process.returncode, 0 if option == "say" else 1, process.stderr)
                self.assertEqual(process.stdout.split(), threads)
                files = ["weights-1.pt", "weights-1.safetensors"] if option == "say" else ["weights-1.pt"]
                self.assertEqual([row["file"] for row in self.findings(option)], files)
                for row, file in zip(self.findings(option), files):
                    self.assertIn("weight has 1 NaN in 2097152 values", row["text"])
                    self.assertIn("last clean file: " + file.replace("1", "0"), row["text"])

    def test_off_looks_at_nothing(self):
        process = self.observed(SAVES / "every_way.py", "weight", options=("--bad-checkpoint", "off"))
        self.assert_exit(process)
        self.assertEqual(self.findings(), [])


class TrainersCheckpointTest(PackagesTest):
    @unittest.skipUnless(importable("transformers") and importable("accelerate"), "transformers or accelerate is not installed")
    def test_save_pretrained_and_rotation(self):
        process = self.observed(SAVES / "trainers.py", "huggingface", run_dir="said")
        self.assert_exit(process)
        self.assertRegex(process.stderr, r"nanquest: step 5: out/checkpoint-6/model.safetensors holds NaN or Inf: "
                                         r"transformer.h.1.mlp.c_fc.weight has 1 NaN in 1024 values.*; "
                                         r"last clean file: out/checkpoint-4/model.safetensors\n")
        self.assertEqual(sorted(os.listdir(self.scratch / "out")), ["checkpoint-6"])
        self.clear("out")
        process = self.observed(SAVES / "trainers.py", "huggingface", options=("--bad-checkpoint", "refuse"))
        self.assertIn("BadCheckpoint: out/checkpoint-6/model.safetensors is not written: transformer.h.1.mlp.c_fc.weight", process.stderr)
        self.assertTrue((self.scratch / "out" / "checkpoint-4" / "model.safetensors").exists())
        self.assertFalse((self.scratch / "out" / "checkpoint-6" / "model.safetensors").exists())

    @unittest.skipUnless(importable("lightning") or importable("pytorch_lightning"), "lightning is not installed")
    def test_lightning(self):
        process = self.observed(SAVES / "trainers.py", "lightning")
        self.assert_exit(process)
        self.assertRegex(process.stderr, r"nanquest: step 5: out/epoch=0-step=6.ckpt holds NaN or Inf: state_dict.net.0.weight has 128 NaN in "
                                         r"128 values .*; last clean file: out/epoch=0-step=4.ckpt\n")


if __name__ == "__main__":
    main()
