"""What is done about a bad step, by programs that know nothing of it: skipped as if it had not been, or once and for all fp32."""

import json
import math

from attached import HERE, NIGHT, AttachTest, main

PROGRAM = HERE / "fallback" / "program.py"
FORMATS = ("fp32", "bf16", "fp16", "pure-bf16", "pure-fp16")
FEW = FORMATS if NIGHT else ("fp16", "pure-bf16")


def same(a, b):
    """Bit for bit."""
    import torch
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.contiguous().view(torch.uint8).equal(b.contiguous().view(torch.uint8)) if a.dim() else (
            a.dtype == b.dtype and same(a.reshape(1), b.reshape(1)))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


class FallbackTest(AttachTest):
    def result(self, *settings, options=None, name="plain", code=0):
        """What one run leaves; with the probe if there are options."""
        import torch
        self.clear(name)
        arguments = (f"{name}.pt", *settings)
        process = (self.plain(PROGRAM, *arguments) if options is None else
                   self.observed(PROGRAM, *arguments, options=options, run_dir=name))
        self.assert_exit(process, code)
        self.assertNotIn("the probe is off", process.stderr)
        return torch.load(self.scratch / f"{name}.pt"), process

    def manifest(self, name):
        return json.loads((self.scratch / name / "manifest.json").read_text())

    def assert_same(self, a, b, *keys):
        for key in keys:
            self.assertTrue(same(a[key], b[key]), key)

    def test_a_bad_batch_in_every_format(self):
        for format in FORMATS:
            with self.subTest(format):
                plain, _ = self.result(f"format={format}")
                if format != "fp16":  # there a scaler leaves the update out
                    self.assertFalse(plain["finite"])
                found, process = self.result(f"format={format}", options=("--on-incident", "fallback_fp32"), name="fallen")
                self.assertTrue(found["finite"])
                self.assertIn("from here on: fp32, learning rate times 0.5", process.stderr)
                self.assertLess(found["held_out"], found["held_out_before"] / 2)
                self.assertTrue(all(math.isfinite(loss) for loss in found["losses"][13:]))
                self.assertGreater(len(plain["rates"]), 38)
                for step, rate in plain["rates"].items():
                    self.assertEqual(found["rates"][step], 0.5 * rate if step > 12 else rate, step)
                self.assertTrue(self.manifest("fallen")["outcome"].endswith("; fp32 after step 12"))
                self.assertEqual(self.manifest("fallen")["config"]["on-incident"], "fallback_fp32")

    def test_it_is_what_a_program_would_do_itself(self):
        for format in FEW:
            for optimizer in ("adamw", "sgd"):
                with self.subTest(format, optimizer=optimizer):
                    settings = (f"format={format}", f"optimizer={optimizer}", "stateful=True")
                    wanted, _ = self.result(*settings, "absent=True", "by_hand=True")
                    found, _ = self.result(*settings, options=("--on-incident", "fallback_fp32"), name="fallen")
                    self.assert_same(wanted, found, "model", "optimizer", "random", "shown")
                    self.assertTrue(found["finite"])

    def test_a_skipped_batch_leaves_nothing_behind(self):
        """Weights, moments, running statistics, the scaler and the generator, as in a run that drew the batch and left it at that."""
        for format in FEW:
            for level, more in (("trace", ()), ("guard", ("accumulate=2", "own_data=True"))):
                with self.subTest(format, level=level):
                    settings = (f"format={format}", "stateful=True", "at=5", "count=2", "steps=12", *more)
                    wanted, _ = self.result(*settings, "absent=True")
                    found, process = self.result(*settings, options=("--on-incident", "skip", "--level", level), name="skipped")
                    self.assertIn("step 5: batch skipped: policy skip", process.stderr)
                    self.assertTrue(found["finite"])
                    self.assert_same(wanted, found, "model", "optimizer", "scaler", "shown", "random")
                    self.assertTrue(self.manifest("skipped")["outcome"].endswith("; 2 batches skipped"))

    def test_what_a_program_draws_between_its_passes_is_not_drawn_again(self):
        plain, _ = self.result("prefetch=True", "where=loss", "absent=True")
        found, process = self.result("prefetch=True", "where=loss", options=("--on-incident", "skip"), name="skipped")
        self.assertIn("draws random numbers between its passes", process.stderr)
        self.assert_same(plain, found, "model", "optimizer", "random")

    def test_buffers_that_a_step_spoils_behind_finite_gradients(self):
        found, process = self.result("where=inf", "stateful=True", options=("--on-incident", "skip"), name="skipped")
        self.assertTrue(found["finite"])
        self.assertIn("batch skipped", process.stderr)

    def test_skips_in_a_row_end_the_program(self):
        for policy, limit, first in (("fallback_fp32", 5, 13), ("fallback_fp32", 2, 13), ("skip", 3, 12)):
            with self.subTest(policy, limit=limit):
                options = ("--on-incident", policy, "--skip-limit", str(limit))
                found, process = self.result("count=-1", options=options, name="stopped", code=4)
                self.assertIn(f"nanquest: stopped: {limit} batches skipped in a row", process.stderr)
                self.assertTrue(found["finite"])
                self.assertEqual(len(found["losses"]), first + limit)
                self.assertTrue(self.manifest("stopped")["outcome"].startswith(f"stopped: {limit} batches skipped in a row"))

    def test_weights_that_are_lost_are_not_skipped_for_ever(self):
        found, process = self.result("where=rate", options=("--on-incident", "fallback_fp32"), name="stopped", code=4)
        self.assertIn("is not finite, and skipping updates cannot repair it", process.stderr)
        self.assertEqual(len(found["losses"]), 14)

    def test_clean_runs_are_left_alone(self):
        for format in FEW:
            plain, _ = self.result(f"format={format}", "stateful=True", "at=99")
            for level in ("guard", "trace"):
                with self.subTest(format, level=level):
                    found, process = self.result(f"format={format}", "stateful=True", "at=99", name="clean", options=(
                        "--on-incident", "fallback_fp32", "--level", level))
                    self.assertTrue(plain["finite"])
                    self.assert_same(plain, found, *plain)
                    self.assertEqual(self.manifest("clean")["outcome"], "the program ended")
                    self.assertEqual(len(self.probes_lines(process)), 1, process.stderr)


if __name__ == "__main__":
    main()
