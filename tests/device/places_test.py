"""The probe where a program spreads over devices, streams and the host's memory."""

import os
import unittest

from observed import Observed, train

PLACES = ("two_devices", "side_stream", "offloaded", "offloaded_pinned")
# By day the level that does most for each place; probe_test.py has the others. By night all.
BY_NIGHT = "NANQUEST_DEVICE_SEEDS" in os.environ


class PlacesTest(Observed):
    def test_no_bit_changes_in_whatever_order_streams_run(self):
        for kind in PLACES:
            for level in ("guard", "trace", "watch") if BY_NIGHT else ("watch",):
                self.assert_same_in_every_order(level, kind)

    def test_a_bad_batch_is_found_and_its_step_comes_back_bit_for_bit_on_the_cpu(self):
        for kind in PLACES:
            for level in ("trace", "watch") if BY_NIGHT else ("trace",):
                with self.subTest(kind=kind, level=level):
                    run, [(weights, _)] = self.observed(level, kind, "batch")
                    self.assert_same_bits(weights, train(kind, "batch")[0])
                    verdict = self.verdict(run)
                    self.assertEqual(verdict["cause"], "BAD_DATA", verdict["explanation"])
                    self.assertTrue(verdict["fix"] and verdict["fix"]["verified"], (verdict["counterfactuals"], verdict["not_tested"]))


if __name__ == "__main__":
    unittest.main()
