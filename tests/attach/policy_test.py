"""What a policy leaves as it was: each program here does what once went wrong."""

import json

from attached import PROGRAMS, AttachTest, main

POLICY, LOOPS = PROGRAMS / "policy", PROGRAMS / "loops"


class PolicyTest(AttachTest):
    def under(self, policy, program, *arguments, code=0, level="guard"):
        process = self.observed(program, *arguments, run_dir=policy, options=("--level", level, "--on-incident", policy))
        self.assert_exit(process, code)
        self.assertNotIn("the probe is off", process.stderr)
        return process

    def test_a_failed_call_holds_no_memory_while_it_is_made_again(self):
        process = self.under("fallback_fp32", POLICY / "memory.py")
        self.assertIn("in fp32 the model raises RuntimeError: only for 16 bits", process.stderr)
        self.assertIn("step 1: batch skipped: in fp32 the model raises", process.stderr)
        self.assertEqual(process.stdout, "gone\n")

    def test_the_fallback_is_taken_among_a_programs_own_hooks(self):
        process = self.under("fallback_fp32", POLICY / "post_hook.py")
        self.assertIn("from here on: fp32", process.stderr)
        self.assertEqual(process.stdout, "4\n")

    def test_an_update_inside_another_leaves_its_rate_alone(self):
        process = self.under("fallback_fp32", POLICY / "nested.py")
        self.assertIn("from here on: fp32", process.stderr)
        self.assertEqual(process.stdout, "0.5\n1.0 0.25\n")

    def test_steps_that_the_program_gives_up_have_their_numbers(self):
        process = self.under("skip", LOOPS / "given_up.py", level="trace")
        skipped = [line for line in self.probes_lines(process) if "batch skipped:" in line]
        self.assertEqual([line.split(":")[1].strip() for line in skipped], ["step 2", "step 4"], process.stderr)
        process = self.under("fallback_fp32", LOOPS / "given_up.py", level="trace")
        self.assertIn("step 2: its update is left out", process.stderr)
        manifest = json.loads((self.scratch / "fallback_fp32" / "manifest.json").read_text())
        self.assertEqual(manifest["outcome"], "the program ended; 1 batch skipped, fp32 after step 2")

    def test_a_step_given_up_goes_back_to_its_own_beginning(self):
        wanted = self.plain(POLICY / "by_hand.py", "absent")
        for level in ("guard", "trace"):
            with self.subTest(level):
                self.clear("skip")
                process = self.under("skip", POLICY / "by_hand.py", level=level)
                if level == "trace":  # guard sees no hand-written update
                    self.assertIn("batch skipped", process.stderr)
                    self.assertEqual(process.stdout, wanted.stdout)

    def test_buffers_of_a_scripted_model(self):
        process = self.under("skip", POLICY / "scripted.py")
        self.assertIn("batch skipped", process.stderr)
        self.assertEqual(process.stdout, "[15.0, 15.0, 15.0, 15.0]\n")

    def test_what_was_made_fp32_can_be_trained_on_without_the_probe(self):
        process = self.plain(POLICY / "detached.py", "runs")
        self.assert_exit(process)
        self.assertIn("from here on: fp32", process.stderr)
        self.assertNotIn("the probe is off", process.stderr)
        self.assertEqual(process.stdout, "trained\n")

    def test_whatever_is_called_first_after_the_fallback(self):
        for how in ("evaluation", "draws", "healthy"):
            with self.subTest(how):
                self.clear("skip"), self.clear("fallback_fp32")
                process = self.under("fallback_fp32", POLICY / "trial.py", how)
                self.assertIn("fallback_fp32 becomes skip: in fp32 the model raises RuntimeError", process.stderr)
                found, wanted = process.stdout, self.under("skip", POLICY / "trial.py", how).stdout
                if how == "healthy":  # what was evaluated on trial was so in fp32
                    found, wanted = (text.splitlines()[-1] for text in (found, wanted))
                self.assertEqual(found, wanted)
        for how in ("thread", "part"):
            with self.subTest(how):
                self.clear("fallback_fp32")
                self.assertNotIn("becomes skip", self.under("fallback_fp32", POLICY / "trial.py", how).stderr)

    def test_rates_and_scales_that_are_written_down(self):
        import h5py
        self.under("fallback_fp32", POLICY / "closure.py")
        with h5py.File(self.scratch / "fallback_fp32" / "series.r0.h5") as file:
            rates, scales = file["history/scalars/values"][:, 2:4].T.tolist()
        self.assertEqual(scales, [1024.0] * 3 + [1.0] * 5)
        self.assertEqual(rates, [0.125] * 3 + [0.0625] * 5)

    def test_buffers_of_models_that_are_gone_do_not_count(self):
        process = self.under("skip", POLICY / "buffers.py")
        before, _, after = process.stderr.partition("one model\n")
        self.assertEqual([line for line in before.splitlines() if not line.startswith("nanquest: level ")], [])
        self.assertEqual(after.count("are not restored when a step is skipped"), 1, after)


if __name__ == "__main__":
    main()
