"""The Hugging Face example of the README: it fails by itself, the probe has the step, replay knows why."""

import os
import unittest

from attached import ROOT, AttachTest, main

PACKAGES = os.environ.get("NANQUEST_TEST_PACKAGES", "")
SAMPLE = ROOT / "samples" / "attach" / "huggingface.py"


def has_transformers():
    import importlib.util
    import sys

    if PACKAGES:
        sys.path.append(PACKAGES)
    return importlib.util.find_spec("transformers") is not None


@unittest.skipUnless(has_transformers(), "transformers is not installed")
class HuggingFaceTest(AttachTest):
    def environment(self, **more):
        found = super().environment(**more)
        found["PYTHONPATH"] = os.pathsep.join(filter(None, [found["PYTHONPATH"], PACKAGES]))
        return dict(found, HF_HUB_OFFLINE="1")

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
