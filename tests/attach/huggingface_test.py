"""The Hugging Face example of the README: it fails by itself, the probe has the step, replay knows why."""

import unittest

from attached import ROOT, PackagesTest, importable, main

SAMPLE = ROOT / "samples" / "attach" / "huggingface.py"


@unittest.skipUnless(importable("transformers"), "transformers is not installed")
class HuggingFaceTest(PackagesTest):
    def test_it_overflows_and_replay_knows_why(self):
        process = self.observed(SAMPLE)
        self.assert_exit(process, 1)
        self.assertRegex(process.stderr, r"step \d+: the loss is (nan|inf)")
        first = self.incidents()[0]
        self.assertIn(f"nanquest-replay run/incidents/{first.name}", process.stderr)
        self.assert_bit_exact(first)
        verdict = self.replay("diagnose", first)
        self.assertEqual(verdict["cause"], "FP16_OVERFLOW", verdict)
        self.assertTrue(verdict["culprit"]["module"].startswith("transformer."), verdict["culprit"])


if __name__ == "__main__":
    main()
