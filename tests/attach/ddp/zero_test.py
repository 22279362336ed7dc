"""DeepSpeed's ZeRO with two processes: steps counted correctly, no alarm and the same bits in healthy runs; the step, the rank, the
operation, weight or sample of one planted fault. DeepSpeed skips such an update by itself, without calling the optimizer that the
probe hooks.
"""

import os
import unittest

from together import TogetherTest

from attached import NIGHT, PACKAGES, importable, main, nightly

# stage, format, kind
WAYS = [("2", "bf16", "plain"), *([("1", "fp32", "plain"), ("3", "bf16", "plain"), ("3", "fp32", "clipped"), ("2", "bf16", "accumulated"),
                                   ("1", "bf16", "clipped"), ("2", "bf16", "offload"), ("3", "bf16", "offload")] if NIGHT else [])]


@unittest.skipUnless(importable("deepspeed"), "deepspeed can't be imported, nor is it in NANQUEST_TEST_PACKAGES")
class ZeroTest(TogetherTest):
    program = "zero.py"

    def environment(self, **more):
        found = super().environment(DS_ACCELERATOR="cpu", **more)
        return dict(found, PYTHONPATH=os.pathsep.join(filter(None, [found["PYTHONPATH"], PACKAGES])))

    def seen(self, way, fault, level="trace"):
        """(stderr, the verdicts of the ranks)"""
        self.clear("run")
        err = self.together(*way, fault, "seen", options=("--level", level), run_dir="run")
        self.assertNotIn("the probe is off", err)
        files = {file.name[14:16]: file for file in self.incidents()}
        self.assertEqual([file.name[5:16] for file in self.incidents()], ["00000005.r0", "00000005.r1"], err)
        self.assertEqual(err.count("in 8 steps"), 2, err)
        for file in files.values():
            self.assert_bit_exact(file)
        return err, [self.replay("diagnose", files[rank], "--no-fixes") for rank in ("r0", "r1")]

    def assert_came_from_rank_1(self, other):
        self.assertEqual((other["ranks"]["local"], other["ranks"]["first"]["rank"]), (False, 1), other["ranks"])

    def test_a_bad_operation(self):
        for way in WAYS:
            with self.subTest(way):
                _, (other, own) = self.seen(way, "op")
                self.assertEqual((own["cause"], own["culprit"]["op"], own["culprit"]["module"]), ("LOG_ZERO", "aten::log", "1.spot"), own)
                self.assert_came_from_rank_1(other)

    @nightly
    def test_a_bad_batch(self):
        for way in WAYS:
            with self.subTest(way):
                _, (other, own) = self.seen(way, "batch")
                self.assertEqual((own["cause"], own["origin"]), ("BAD_DATA", "input"), own)
                self.assert_came_from_rank_1(other)

    def test_a_bad_weight(self):
        """Weights are parts of one flat memory: the one that holds the bad value is named."""
        for way in WAYS:
            with self.subTest(way):
                # It stays bad: at level watch the rank that is sent its sums knows from the first step that they arrive.
                _, (other, own) = self.seen(way, "weight", "watch")
                self.assertEqual((own["cause"], own["culprit"]["tensor"]), ("BAD_STATE", "1.down.weight"), own)
                self.assertEqual(own["culprit"].get("part"),
                                 "elements 1024 to 2047 of 2048, part 2 of 2" if way[0] == "3" else None, own["culprit"])
                self.assert_came_from_rank_1(other)

    def test_healthy_training_is_what_it_is_without_the_probe(self):
        for way in WAYS:
            with self.subTest(way):
                self.together(*way, "healthy", "plain")
                self.clear("run")
                err = self.together(*way, "healthy", "seen", options=("--level", "trace"), run_dir="run")
                said = sorted(line for line in err.splitlines() if line.startswith("nanquest: "))
                self.assertEqual((self.incidents(), said), ([], [f"nanquest: rank {rank}: no incident in 8 steps" for rank in range(2)]), err)
                self.assert_same_bits("plain", "seen")


if __name__ == "__main__":
    main()
