"""A training by Lightning's Trainer, unmodified, with one bad batch; by each of its two packages."""

import unittest

from attached import NIGHT, PROGRAMS, PackagesTest, importable, main

PROGRAM = PROGRAMS / "fallback_lightning.py"
BAD, STEPS = 12, 40
FALLBACK = ("--on-incident", "fallback_fp32")


@unittest.skipUnless(importable("lightning") and importable("pytorch_lightning"), "needs lightning and pytorch-lightning")
class LightningTest(PackagesTest):
    def left(self, process, name):
        import torch
        self.assert_exit(process)
        self.assertNotIn("the probe is off", process.stderr)
        return torch.load(self.scratch / name)

    def check(self, package, precision, process):
        plain = self.left(self.plain(PROGRAM, package, precision, BAD, "plain.pt"), "plain.pt")
        found = self.left(process, "fallen.pt")
        self.assertFalse(plain["finite"])
        self.assertTrue(found["finite"])
        self.assertEqual(found["dtype"], "torch.float32")
        self.assertIn(f"step {BAD}: its update is left out; from here on: fp32, learning rate times 0.5", process.stderr)
        self.assertEqual(len(plain["rates"]), STEPS)
        self.assertEqual(found["rates"], {step: 0.5 * rate if step > BAD else rate for step, rate in plain["rates"].items()})
        self.assertLess(found["after"], 0.2 * found["before"])

    def test_the_trainer(self):
        for package, precision in (("lightning.pytorch", "bf16-mixed"), ("pytorch_lightning", "bf16-true"))[:2 if NIGHT else 1]:
            with self.subTest(package):
                self.check(package, precision, self.observed(PROGRAM, package, precision, BAD, "fallen.pt", options=FALLBACK))

    def test_its_callback(self):
        for package, precision in (("pytorch_lightning", "bf16-mixed"), ("lightning.pytorch", "bf16-true"))[:2 if NIGHT else 1]:
            with self.subTest(package):
                process = self.plain(PROGRAM, package, precision, BAD, "fallen.pt", "callback", "fallback_fp32")
                self.check(package, precision, process)

    def test_a_clean_run(self):
        plain = self.left(self.plain(PROGRAM, "lightning.pytorch", "bf16-mixed", 99, "plain.pt"), "plain.pt")
        process = self.observed(PROGRAM, "lightning.pytorch", "bf16-mixed", 99, "clean.pt", options=FALLBACK)
        self.assertEqual(self.left(process, "clean.pt"), plain)


if __name__ == "__main__":
    main()
