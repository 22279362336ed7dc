"""--on-spike: a finite step far out of its run's usual range, and a loss that leaves it for good."""

import json
import unittest

from attached import HERE, AttachTest, main

RUNS, TARGET = HERE / "spikes" / "runs.py", HERE / "spikes" / "target.py"
SPIKE = r"nanquest: step 150: a spike: the loss is [\d.]+, usually [\d.e-]+ to [\d.e-]+"


class SpikeTest(AttachTest):
    def manifest(self):
        return json.loads((self.scratch / "run" / "manifest.json").read_text())

    def run_of(self, kind, steps=220, *options, code=0):
        process = self.observed(RUNS, kind, str(steps), options=options)
        self.assertEqual(process.returncode, code, process.stderr)
        self.assertNotIn("NaN", process.stderr)
        return process

    def test_a_healthy_run_has_none(self):
        process = self.run_of("healthy", 400)
        self.assertIn("nanquest: no incident in 400 steps", process.stderr)
        self.assertEqual(self.manifest()["incidents"], [])

    def test_a_spike_is_recorded_once_and_changes_nothing(self):
        process = self.run_of("sample")
        self.assertRegex(process.stderr, SPIKE)
        self.assertIn("1 incident in 220 steps (1 of them finite: far out of the usual range)", process.stderr)
        (row,) = self.manifest()["incidents"]
        self.assertEqual((row["step"], row["gate"]), (150, "spike"))
        self.assertTrue((self.scratch / "run" / row["file"]).exists())
        self.clear("run")
        self.assertEqual(self.run_of("sample", 220, "--on-spike", "off").stdout, process.stdout)
        self.assertEqual(self.manifest()["incidents"], [])

    def test_what_is_trained_anew_has_a_band_of_its_own(self):
        for kind in ("replaced", "again"):
            with self.subTest(kind):
                self.clear("run")
                self.run_of(kind)
                self.assertEqual(self.manifest()["incidents"], [])

    def test_a_renewed_target_network_is_no_spike_and_hides_none(self):
        """Without the rule each of these has a spike in step 200."""
        for kind, level in (("load", "trace"), ("copy", "trace"), ("load", "guard")):
            with self.subTest(kind, level=level):
                self.clear("run")
                self.observed(TARGET, kind, "200", "230", options=("--level", level))
                self.assertEqual(self.manifest()["incidents"], [])
        self.clear("run")
        self.observed(TARGET, "load", "200", "230", "200")
        self.assertEqual([(row["step"], row["gate"]) for row in self.manifest()["incidents"]], [(200, "spike")])

    def test_replay_of_a_batch_needs_the_tape_to_tell_it_from_the_weights(self):
        self.run_of("sample")
        (snapshot,) = self.incidents()
        verdict = self.replay(snapshot)
        self.assertTrue(verdict["found"])
        self.assertRegex(verdict["on_record"], r"^the loss was [\d.]+, usually [\d.]+ to [\d.]+")
        self.assertEqual((verdict["cause"], verdict["samples"]["poison"]), ("UNKNOWN", []), verdict["explanation"])
        for label in ("SPIKE_DATA", "SPIKE_STATE", "--tape"):
            self.assertIn(label, verdict["explanation"] + verdict["advice"])
        report = snapshot.with_suffix(".md").read_text()
        self.assertIn(verdict["on_record"], report)
        self.clear("run")
        self.run_of("sample", 220, "--tape", "16")
        verdict = self.replay(self.incidents()[0])
        self.assertEqual((verdict["cause"], verdict["origin"]), ("SPIKE_DATA", "input"), verdict["explanation"])
        tried = {trial["change"]: trial["result"] for trial in verdict["counterfactuals"]}
        self.assertEqual(tried["the batch of step 149"], "in_range", tried)
        self.assertEqual(tried["the whole step in fp64"], "out_of_range", tried)

    def test_skip_leaves_its_update_out(self):
        process = self.run_of("sample", 220, "--on-spike", "skip")
        self.assertIn("nanquest: step 150: batch skipped: spike", process.stderr)
        self.assertIn("1 batch skipped", process.stderr)

    def test_stop_ends_the_program(self):
        process = self.run_of("sample", 220, "--on-spike", "stop", code=4)
        self.assertRegex(process.stderr, SPIKE + r".*; stopped")
        self.assertEqual(len(self.manifest()["incidents"]), 1)

    def test_a_rate_far_too_high_is_divergence(self):
        process = self.run_of("rate", 120)
        self.assertRegex(process.stderr, r"nanquest: step \d+: DIVERGENCE: the loss left its band at step \d+ and has not come back")
        self.assertLessEqual(len(self.manifest()["incidents"]), 1)
        self.assertIn("the weights of", process.stderr)

    def test_level_guard_says_that_it_keeps_no_file(self):
        process = self.run_of("sample", 220, "--level", "guard")
        self.assertRegex(process.stderr, SPIKE + r".*level guard keeps no trace")


if __name__ == "__main__":
    main()
