"""The Trainers of transformers and Lightning themselves: observed as they are, and with nanquest's callbacks, which tell the
Trainer's numbers, settings and samples."""

import json
import unittest

from attached import PROGRAMS, PackagesTest, importable, main, nightly


class TrainersTest(PackagesTest):
    def assert_poison(self, step, count, *settings):
        """The incident of row 13 at this step; `count` samples are named."""
        (found,) = self.incidents()
        self.assertEqual(found.name, f"step-{step:08d}.r0.h5")
        self.assert_bit_exact(found)
        verdict = self.replay("diagnose", found)
        self.assertEqual(verdict["cause"], "BAD_DATA", verdict)
        self.assertEqual(verdict["samples"]["batch"], count, verdict["samples"])
        self.assertEqual(verdict["samples"]["poison_ids"], ["13"])
        config = json.loads((self.scratch / "run" / "manifest.json").read_text())["config"]
        for name in settings:
            self.assertIn(name, config)

    @unittest.skipUnless(importable("transformers") and importable("accelerate"), "transformers or accelerate is not installed")
    def test_huggingface(self):
        program = PROGRAMS / "trainer_huggingface.py"
        process = self.observed(program, options=("--level", "watch"))
        self.assert_exit(process)
        self.assertRegex(process.stderr, r"nanquest: 1 incident in 8 steps .*; files in run \(nanquest explain run\)\n")
        step = int(self.incidents()[0].name[5:13])
        self.clear("run")
        self.assert_exit(self.observed(program, "callback", options=("--level", "watch")))
        self.assert_poison(step, 4, "trainer.learning_rate", "trainer.bf16")

    @unittest.skipUnless(importable("transformers") and importable("accelerate"), "transformers or accelerate is not installed")
    def test_huggingface_that_has_resumed(self):
        """Steps count from the start of the process; what the Trainer calls this step is said beside it."""
        program = PROGRAMS / "trainer_huggingface.py"
        self.assert_exit(self.observed(program, "save", run_dir="saved"))
        process = self.observed(program, "resume")
        self.assert_exit(process)
        (found,) = self.incidents()
        step = int(found.name[5:13])
        self.assertRegex(process.stderr, rf"nanquest: step {step}: .* \(the Trainer's step {step + 2}\); see it with: ")
        self.clear("run")
        process = self.observed(program)
        self.assert_exit(process)
        self.assertNotIn("the Trainer's step", process.stderr)
        self.assertEqual([file.name for file in self.incidents()], [f"step-{step + 2:08d}.r0.h5"])

    @unittest.skipUnless(importable("lightning") or importable("pytorch_lightning"), "lightning is not installed")
    def test_lightning(self):
        program = PROGRAMS / "trainer_lightning.py"
        process = self.observed(program, 1, options=("--level", "watch"))
        self.assert_exit(process)
        self.assertRegex(process.stderr, r"nanquest: 1 incident in 8 steps .*; files in run \(nanquest explain run\)\n")
        self.assertEqual(self.incidents()[0].name, "step-00000003.r0.h5")
        self.clear("run")
        self.assert_exit(self.observed(program, 1, "callback", options=("--level", "watch")))
        self.assert_poison(3, 4, "trainer.lr", "trainer.precision")

    @nightly
    @unittest.skipUnless(importable("lightning") or importable("pytorch_lightning"), "lightning is not installed")
    def test_lightning_with_two_processes(self):
        process = self.observed(PROGRAMS / "trainer_lightning.py", 2, options=("--level", "watch"))
        self.assert_exit(process)
        self.assertIn("in 2 processes of 4 steps each", process.stderr)
        self.assertEqual({p.name for p in (self.scratch / "run").glob("series*")}, {"series.r0.h5", "series.r1.h5"})


if __name__ == "__main__":
    main()
