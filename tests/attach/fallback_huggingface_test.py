"""A fine-tune by the Trainer of transformers, unmodified, with one bad batch."""

import unittest

from attached import NIGHT, PROGRAMS, PackagesTest, importable, main, nightly

LLAVA = PROGRAMS / "fallback_llava.py"
PROGRAM = PROGRAMS / "fallback_huggingface.py"
BAD = 12


@unittest.skipUnless(importable("transformers"), "needs transformers")
class HuggingFaceTest(PackagesTest):
    def left(self, process, name):
        import torch
        self.assert_exit(process)
        self.assertNotIn("the probe is off", process.stderr)
        return torch.load(self.scratch / name)

    def check(self, how, found, plain, process):
        self.assertFalse(plain["finite"])
        self.assertTrue(found["finite"])
        self.assertEqual(found["dtype"], "torch.float32")
        self.assertIn(f"step {BAD}: its update is left out; from here on: fp32, learning rate times 0.5", process.stderr)
        self.assertEqual(len(plain["rates"]), 30)
        for step, rate in plain["rates"].items():
            self.assertEqual(found["rates"][step], 0.5 * rate if step > BAD else rate, step)
        self.assertLess(found["after"], 0.5 * found["before"])

    def test_the_trainer(self):
        for how in ("amp", *(("pure", *(["lora"] if importable("peft") else [])) if NIGHT else ())):
            with self.subTest(how):
                plain = self.left(self.plain(PROGRAM, how, BAD, "plain.pt"), "plain.pt")
                process = self.observed(PROGRAM, how, BAD, "fallen.pt", options=("--on-incident", "fallback_fp32"), run_dir=how)
                self.check(how, self.left(process, "fallen.pt"), plain, process)

    @nightly
    def test_its_callback(self):
        plain = self.left(self.plain(PROGRAM, "amp", BAD, "plain.pt"), "plain.pt")
        process = self.plain(PROGRAM, "amp", BAD, "fallen.pt", "callback", "fallback_fp32")
        self.check("amp", self.left(process, "fallen.pt"), plain, process)

    @unittest.skipUnless(importable("peft"), "needs peft")
    def test_pictures_and_words(self):
        """LoRA, gradient checkpointing, autocast around weights in bf16, and no Trainer."""
        plain = self.left(self.plain(LLAVA, 8 * BAD + 4, "plain.pt"), "plain.pt")
        self.assertEqual((plain["finite"], plain["tpr"]), (False, 0.0))
        found = self.left(self.observed(LLAVA, 8 * BAD + 4, "fallen.pt", options=("--on-incident", "fallback_fp32")), "fallen.pt")
        self.assertTrue(found["finite"])
        self.assertEqual(found["dtype"], "torch.float32")
        self.assertEqual(found["rates"], {step: 0.5 * rate if step > BAD else rate for step, rate in plain["rates"].items()})
        self.assertGreater(found["tpr"], 0.8)
        self.assertLess(found["fpr"], 0.2)

    def test_a_clean_run(self):
        plain = self.left(self.plain(PROGRAM, "pure", 99, "plain.pt"), "plain.pt")
        process = self.observed(PROGRAM, "pure", 99, "clean.pt", options=("--on-incident", "fallback_fp32"))
        self.assertEqual(self.left(process, "clean.pt"), plain)


if __name__ == "__main__":
    main()
