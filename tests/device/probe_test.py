"""The probe on the test device: it finds the same as on a CPU, waits for nothing, and changes no bit."""

import json
import unittest

from observed import BAD, COUNTED_FROM, ORDINARY, STEPS, Observed, train


class ProbeTest(Observed):
    def test_a_step_runs_again_on_its_device_and_on_the_cpu(self):
        for level in ("trace", "watch"):
            run, _ = self.observed(level, "dropout", "batch")
            file = sorted(run.glob("incidents/*.r0.h5"))[0]
            for arguments, here, where in [((), False, "cpu"), ((), True, "nqdev:0"), (("--device", "nqdev"), True, "nqdev:0"),
                                           (("--device", "cpu"), True, "cpu")]:
                with self.subTest(level=level, arguments=arguments, here=here):
                    code, said, errors = self.replayed(file, *arguments, here=here)
                    self.assertEqual(code, 0, (said, errors))
                    self.assertEqual(said["agreement"], "bit_for_bit", said)
                    self.assertEqual((said["recorded_on"], said["replayed_on"]), ("nqdev:0", where))
                    self.assertEqual("elsewhere" in said, where == "cpu")
            code, _, errors = self.replayed(file, "--device", "nqdev")
            self.assertEqual(code, 2)
            self.assertEqual(len(errors.splitlines()), 1, errors)
            self.assertIn("no such device here", errors)

    def test_what_a_cpu_has_no_kernel_for_takes_its_recorded_values(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "device_only", "batch")
                self.assert_same_bits(weights, train("device_only", "batch")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_DATA", verdict["explanation"])
                self.assertEqual(verdict["reproduction"]["opaque_ops"], 1, verdict["reproduction"])
                self.assertEqual(verdict["reproduction"]["agreement"], "bit_for_bit")
                self.assertEqual(verdict["reproduction"]["elsewhere"]["replayed_on"], "cpu")

    def test_a_cpu_computes_fused_attention_where_something_before_it_is_changed(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "attends", "batch")
                self.assert_same_bits(weights, train("attends", "batch")[0])
                file = sorted(run.glob("incidents/*.r0.h5"))[0]
                code, said, errors = self.replayed(file, here=True)
                self.assertEqual((code, said["agreement"], said["failed_ops"], said["opaque_ops"]), (0, "bit_for_bit", 0, 0),
                                 (said, errors))
                verdict = self.verdict(run)  # as recorded what the device made stands in
                self.assertEqual(verdict["cause"], "BAD_DATA", verdict["explanation"])
                self.assertEqual(verdict["reproduction"]["opaque_ops"], 2, verdict["reproduction"])
                self.assertTrue(verdict["fix"]["verified"], verdict["fix"])
                self.assertEqual(len(verdict["blame"]["set"]), 1, verdict["blame"])

    def test_no_step_of_a_device_is_saved_for_an_audit(self):
        run, [(weights, _)] = self.observed("trace", "adamw", audit=2)
        self.assert_same_bits(weights, train("adamw")[0])
        self.assertEqual(self.said.count("--audit: no step is audited, because a CPU runs it again, which does not have the kernels of nqdev"), 1)
        self.assertEqual(list(run.glob("recordings/*")), [])

    def test_a_bad_update_is_found_in_the_step_that_made_it(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "dropout", "rate")
                self.assert_same_bits(weights, train("dropout", "rate")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_SETTING", verdict["explanation"])
                self.assertEqual(verdict["phase"], "optimizer")

    def test_a_bad_batch_is_found_and_its_step_comes_back_bit_for_bit_on_the_cpu(self):
        cases = [(kind, "trace", {}) for kind in (*ORDINARY, "fp8")] + [(kind, "watch", {}) for kind in ("fused", "dropout", "fp8")]
        cases += [("adamw", "trace", {"keep_steps": 0}), ("fp16", "trace", {"keep_steps": 0}), ("fused", "trace", {"gate": "now"})]
        for kind, level, settings in cases:
            with self.subTest(kind=kind, level=level, settings=settings):
                run, [(weights, _)] = self.observed(level, kind, "batch", **settings)
                self.assert_same_bits(weights, train(kind, "batch")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_DATA", verdict["explanation"])
                self.assertEqual(verdict["culprit"]["module"], "0")
                self.assertTrue(verdict["fix"]["verified"])

    def test_an_overflow_that_later_ops_hide_is_asked_about_in_the_step_after_it(self):
        for level, watch_every in (("watch", 0), ("trace", BAD)):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "silent", "large", watch_every=watch_every)
                self.assert_same_bits(weights, train("silent", "large")[0])
                verdict = self.verdict(run, BAD + 1)
                self.assertEqual((verdict["cause"], verdict["culprit"]["op"]), ("FP16_OVERFLOW", "aten::pow"), verdict)

    def test_an_overflow_that_does_no_harm_is_no_incident(self):
        run, [(weights, _)] = self.observed("watch", "saturates", "large")
        self.assert_same_bits(weights, train("saturates", "large")[0])
        self.assertEqual(list(run.glob("incidents/*")), [])

    def test_no_bit_changes_in_whatever_order_streams_run(self):
        for kind, level in [(kind, "trace") for kind in ORDINARY] + [("adamw", "guard"), ("dropout", "watch"), ("fp16", "watch")]:
            self.assert_same_in_every_order(level, kind)

    def test_failures_are_the_programs_alone(self):
        words = {"out_of_memory": "out of memory", "launch": "earlier kernel failed", "lost": "lost"}
        alone = train("dropout")[0]
        for level in ("trace", "watch"):
            _, outcomes = self.observed(level, "dropout", "failures")
            told = dict.fromkeys(words, 0)
            for failure, after, outcome in outcomes:
                with self.subTest(level=level, failure=failure, after=after):
                    if isinstance(outcome, str):
                        self.assertIn(words[failure], outcome)
                        told[failure] += 1
                    else:
                        self.assert_same_bits(outcome, alone)
            for failure, times in told.items():
                self.assertGreater(times, 5, (level, failure))

    def test_a_healthy_step_is_not_waited_for(self):
        """… where the device keeps up with the host (seed 0); a watched one is waited for at most once, and so is one with --gate now."""
        counted = STEPS - COUNTED_FROM
        for kind, level, settings, waits, calls in [("fused", "guard", {}, 0, 3), ("fused", "trace", {}, 0, 5), ("adamw", "trace", {}, 0, 4),
                                                    ("fused", "trace", {"keep_steps": 0}, 0, 4), ("adamw", "trace", {"keep_steps": 0}, 0, 4),
                                                    ("fp16", "guard", {}, 0, 3), ("fp16", "trace", {}, 0, 5), ("moved", "trace", {}, 0, 5), ("fused", "watch", {}, 1, None)]:
            alone = train(kind, seed=0)[1]
            with self.subTest(kind=kind, level=level, settings=settings):
                _, [(_, counts)] = self.observed(level, kind, seeds=0, **settings)
                more = {what: (counts[what] - alone[what]) / counted for what in counts}
                print(level, settings, more, "more a step")
                self.assertLessEqual(more["synchronisations"], waits, (counts, alone))
                if calls is not None:
                    # Gradients are looked at, and what an update overwrites is copied, list by list, however many tensors that are.
                    self.assertLessEqual(more["launches"] + more["copies"], calls, (counts, alone))

    def test_a_host_that_is_ahead_waits_once_a_step_at_most(self):
        for settings in ({}, {"gate": "now"}):
            with self.subTest(settings):
                _, [(_, counts)] = self.observed("guard", "fused", **settings)
                self.assertLessEqual(counts["synchronisations"] - train("fused")[1]["synchronisations"], STEPS - COUNTED_FROM)


if __name__ == "__main__":
    unittest.main()
