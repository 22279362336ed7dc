"""Weights that are spread over two processes: the rank that did it says what it was, the other from where it came, what it left
behind is carried on, and training is what it is without the probe.

usage: sharded_test.py [--all]      (--all: every way of spreading them, at each level, under torchrun)
"""

import sys

from together import TogetherTest

from attached import main

ALL = "--all" in sys.argv
WAYS = ("fsdp2", "tensor", "fsdp1") if ALL else ("fsdp2",)
LEVELS = ("watch", "trace") if ALL else ("watch",)


class ShardedTest(TogetherTest):
    program, launched = "sharded.py", ALL

    def run_both(self, way, fault, level):
        self.clear("run")
        err = self.together(way, fault, "seen", options=("--level", level), run_dir="run")
        self.assertNotIn("the probe is off", err)
        return err

    def verdicts(self, way, fault, level):
        err = self.run_both(way, fault, level)
        files = {rank: self.scratch / "run" / "incidents" / f"step-00000005.r{rank}.h5" for rank in (0, 1)}
        for file in files.values():
            self.assertTrue(file.exists(), err)
        self.assertEqual(len(self.incidents()), 2, err)  # what it leaves behind is no other incident
        for file in files.values():
            self.assert_bit_exact(file)
        return [self.replay("diagnose", files[rank], "--no-fixes") for rank in (0, 1)]

    def each(self, ways):
        return ((way, level) for way in WAYS if way in ways for level in LEVELS)

    def test_a_bad_batch_of_one_rank(self):
        for way, level in self.each(("fsdp2", "fsdp1")):
            with self.subTest(way, level=level):
                other, own = self.verdicts(way, "batch", level)
                self.assertEqual((own["cause"], own["origin"], own["samples"]["poison"]), ("BAD_DATA", "input", [3]), own)
                self.assertIn("reduce_scatter", other["culprit"]["op"], other)
                self.assertFalse(other["ranks"]["local"], other["ranks"])
                self.assertEqual(other["ranks"]["first"]["rank"], 1, other["ranks"])

    def test_a_bad_batch_in_a_closure(self):
        """Its gradients come after the probe was given the weights: they are looked at all the same, and the update is left out."""
        import torch
        for way, level in self.each(("fsdp2",)):
            with self.subTest(way, level=level):
                err = self.run_both(way, "closure", level)
                self.assertEqual(len(self.incidents()), 2, err)
                for file in self.incidents():
                    self.assertEqual(file.name[5:13], "00000005")
                self.assertEqual(err.count("gradient elements are NaN or Inf"), 2, err)
                self.clear("run")
                err = self.together(way, "closure", "skipped", options=("--level", level, "--on-incident", "skip"), run_dir="run")
                self.assertTrue(all(torch.isfinite(value).all() for weights in self.weights("skipped") for value in weights.values()), err)

    def test_a_part_of_a_weight_that_is_bad(self):
        for way, level in self.each(("fsdp2", "tensor")):
            with self.subTest(way, level=level):
                other, own = self.verdicts(way, "weight", level)
                self.assertEqual((own["cause"], own["culprit"]["tensor"]), ("BAD_STATE", "1.down.weight"), own)
                self.assertFalse(other["ranks"]["local"], other["ranks"])
                self.assertEqual(other["ranks"]["first"]["rank"], 1, other["ranks"])

    def test_a_batch_that_all_ranks_share(self):
        for way, level in self.each(("tensor",)):
            with self.subTest(way, level=level):
                for own in self.verdicts(way, "batch", level):
                    self.assertEqual((own["cause"], own["origin"]), ("BAD_DATA", "input"), own)

    def test_an_operation_of_one_rank(self):
        for way, level in self.each(("fsdp2",)):
            with self.subTest(way, level=level):
                err = self.run_both(way, "op", level)
                file = self.scratch / "run" / "incidents" / "step-00000005.r1.h5"
                self.assertTrue(file.exists(), err)
                own = self.replay("diagnose", file, "--no-fixes")
                self.assertEqual((own["cause"], own["culprit"]["op"]), ("LOG_ZERO", "aten::log"), own)

    def test_what_collectives_gave_is_no_evidence_against_a_wider_format(self):
        for way, level in self.each(("fsdp2",)):
            with self.subTest(way, level=level):
                self.run_both(way, "grows", level)
                files = [self.scratch / "run" / "incidents" / f"step-00000005.r{rank}.h5" for rank in (0, 1)]
                other, own = (self.replay("diagnose", file) for file in files)
                self.assertEqual((own["culprit"]["op"], own["culprit"]["module"]), ("aten::native_layer_norm", "0.norm"), own)
                for said in (other, own):  # with the recorded sums of the other rank in it no run of one rank can be finite
                    self.assertEqual((said["precision"]["fp64"], said["precision"]["verdict"]), ("not_run", None), said["precision"])
                    self.assertNotIn("samples", {each["name"] for each in said["evidence"]})
                    self.assertEqual([line for line in said["not_tested"] if "no kernel" in line], [])
                    self.assertIn("nanquest-replay ranks", " ".join(said["not_tested"]))
                # What arrived is all that the other rank can name.
                self.assertEqual({one["op"] for one in other["blame"]["set"]}, {"c10d::_reduce_scatter_base_"}, other["blame"])
                # Blame on the rank that did it can be found, if the other passed nothing bad; no fix depends on that.
                self.assertEqual(own["blame"]["set"][0]["module"], "0.norm", own["blame"])
                self.assertIn("c10d::_reduce_scatter_base_", {one["op"] for one in own["blame"]["assumed"]}, own["blame"])
                self.assertIsNone(own["fix"], own["fix"])
                together = self.replay("ranks", self.scratch / "run")
                self.assertTrue(together["proof"]["healed"], together["proof"])

    def steps_of_incidents(self, fault):
        err = self.run_both("tensor", fault, "watch")
        return err, {rank: sorted(path.name[5:13] for path in self.incidents() if path.name.endswith(f".r{rank}.h5")) for rank in (0, 1)}

    def test_what_still_arrives_is_counted(self):
        err, steps = self.steps_of_incidents("arrives")
        self.assertEqual(steps, {0: ["00000005"], 1: ["00000005"]}, err)
        self.assertRegex(err, r"step 6: what arrives by _?c10d\S*::all_?reduce\S* in 0.down is still NaN or Inf from step 5")
        self.assertIn("(4 later steps only propagated" if ALL else "(2 later steps only propagated", err)  # said once a launch

    def test_what_arrives_after_a_good_step_is_news(self):
        err, steps = self.steps_of_incidents("returns")
        self.assertEqual(steps, {0: ["00000005", "00000007"], 1: ["00000005", "00000007"]}, err)

    def test_healthy_training_is_what_it_is_without_the_probe(self):
        for way, level in self.each(WAYS):
            with self.subTest(way, level=level):
                self.together(way, "healthy", "plain")
                self.run_both(way, "healthy", level)
                self.assertEqual(self.incidents(), [])
                self.assert_same_bits("plain", "seen")


if __name__ == "__main__":
    if ALL:
        sys.argv.remove("--all")
    main()
