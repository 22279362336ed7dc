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

    def test_a_bad_update_is_found_in_the_step_that_made_it(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "dropout", "rate")
                self.assert_same_bits(weights, train("dropout", "rate")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_SETTING", verdict["explanation"])
                self.assertEqual(verdict["phase"], "optimizer")

    def test_a_bad_batch_is_found_and_its_step_comes_back_bit_for_bit_on_the_cpu(self):
        for kind, level in [(kind, "trace") for kind in ORDINARY] + [("fused", "watch"), ("dropout", "watch"), ("fp8", "trace"),
                                                                         ("fp8", "watch")]:
            with self.subTest(kind=kind, level=level):
                run, [(weights, _)] = self.observed(level, kind, "batch")
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

    def test_a_healthy_step_is_waited_for_once(self):
        """… and a watched one three times: at the gate, for what its ops made, and for what ran between its update and the next pass."""
        counted = STEPS - COUNTED_FROM
        for kind, level in [("fused", "guard"), ("fused", "trace"), ("fused", "watch"), ("moved", "trace")]:
            alone = train(kind)[1]
            with self.subTest(kind=kind, level=level):
                _, [(_, counts)] = self.observed(level, kind)
                print(level, {what: (counts[what] - alone[what]) / counted for what in counts}, "more a step")
                waits = counts["synchronisations"] - alone["synchronisations"]
                self.assertLessEqual(waits, counted * (3 if level == "watch" else 1), (counts, alone))
                if level != "watch":
                    self.assertLessEqual(counts["host_reads"] - alone["host_reads"], counted, (counts, alone))
                    # What an update overwrites is copied list by list, however many tensors that are.
                    calls = sum(counts[what] - alone[what] for what in ("launches", "copies"))
                    self.assertLessEqual(calls, counted * (5 if level == "guard" else 9), (counts, alone))


if __name__ == "__main__":
    unittest.main()
