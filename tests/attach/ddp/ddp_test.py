"""Programs of several processes: each rank's file names its rank, and replay tells whose fault it was.

usage: ddp_test.py [--all]      (--all: every way of training together, at each level, under torchrun)
"""

import sys

from together import HERE, TogetherTest

from attached import PROGRAMS, main

ALL = "--all" in sys.argv
MODES = ("ddp", "bucket-view", "no-sync", "manual", "gather") if ALL else ("ddp",)
LEVELS = ("watch", "trace") if ALL else ("watch",)


class DdpTest(TogetherTest):
    launched = ALL

    def check(self, mode, level):
        run = f"run-{mode}-{level}"
        bad = 1
        self.together(mode, bad, f"{run}-plain")
        options = ("--level", level, *(("--watch-every", "0") if level == "trace" else ()))
        err = self.together(mode, bad, f"{run}-seen", options=options, run_dir=run)
        self.assertNotIn("off", err)
        self.assert_same_bits(f"{run}-plain", f"{run}-seen")
        files = {rank: self.scratch / run / "incidents" / f"step-00000003.r{rank}.h5" for rank in (0, 1)}
        for rank, file in files.items():
            self.assertTrue(file.exists(), err)
            self.assertGreater(self.assert_bit_exact(file)["opaque_ops"], 0)
        collective = "c10d::allgather_" if mode == "gather" else "c10d::allreduce_"

        own = self.replay("diagnose", files[bad], "--no-fixes")
        self.assertEqual(own["rank"], bad)
        self.assertTrue(own["ranks"]["local"], own["ranks"])
        self.assertEqual((own["culprit"]["op"], own["cause"]), ("aten::log", "LOG_ZERO"), own)
        self.assertEqual((own["ranks"]["first"]["rank"], own["ranks"]["world_size"]), (bad, 2), own["ranks"])

        got = self.replay("diagnose", files[1 - bad], "--no-fixes", "--no-files")
        self.assertEqual(got["rank"], 1 - bad)
        self.assertEqual((got["culprit"]["op"], got["cause"]), (collective, "UNKNOWN"), got)
        self.assertFalse(got["ranks"]["local"], got["ranks"])
        self.assertEqual(got["ranks"]["arrived_by"]["op"], collective)
        first = got["ranks"]["first"]
        self.assertEqual((first["rank"], first["op"], first["file"]), (bad, "aten::log", str(files[bad])), got["ranks"])
        self.assertIn(f"Rank {bad} was first: aten::log", got["ranks"]["text"])
        self.assertIn(f"nanquest-replay {files[bad]}", got["advice"])
        self.assertTrue(self.told(files[1 - bad], "--no-fixes").startswith(f"ELSEWHERE   rank {bad} made the bad values of step 3;"))
        self.assertIn(": aten::log (forward), op ", self.told(*files.values()).split("\ncause ", 1)[1])

        files[bad].unlink()
        alone = self.replay("diagnose", files[1 - bad], "--no-fixes", "--no-files")
        self.assertEqual(alone["ranks"]["missing"], [bad])
        self.assertIsNone(alone["ranks"]["first"])
        self.assertIn("left no file", alone["ranks"]["text"])

    def test_ranks_do_the_same_about_a_bad_step(self):
        import torch
        refused = "fallback_fp32 becomes skip: "
        for mode, said in (("ddp", "from here on: fp32"), ("ddp-amp", "from here on: fp32"),
                           ("ddp-low", refused + "DistributedDataParallel keeps buckets in the format of the weights"),
                           ("manual", refused + "several processes train together without DistributedDataParallel"),
                           ("ddp-loss", "with several processes only the gradients decide"),
                           ("ddp-given-up", "with several processes only the gradients decide"),
                           ("ddp-average", "from here on: fp32")):
            with self.subTest(mode):
                err = self.together(mode, 1, mode, options=("--level", "guard", "--on-incident", "fallback_fp32"), run_dir=mode)
                self.assertNotIn("the probe is off", err)
                self.assertEqual(err.count(said), 1 if mode in ("ddp-loss", "ddp-given-up") else 2, err)
                one, other = self.weights(mode)
                for name, value in one.items():
                    self.assertTrue(bool(torch.isfinite(value).all()), name)
                    if "running" not in name:  # of each rank's own batches
                        self.assertTrue(value.equal(other[name]), name)

    def test_ranks_watch_the_same_steps(self):
        self.program = PROGRAMS / "watched_steps.py"
        self.together("120", "found", options=("--watch-percent", "100000"))
        for rank in (0, 1):  # a rank that has heard nothing watches none after the first
            self.assertEqual((self.scratch / f"found.{rank}").read_text(), "[0, 1, 2, 50, 100]", rank)

    def test_ranks_whose_gradients_nobody_sums_agree(self):
        options, agrees = ("--level", "guard", "--on-incident", "skip"), "the 2 ranks agree whether to leave it out"
        self.together("local-absent", 1, "wanted")
        err = self.together("local", 1, "local", options=options, run_dir="local")
        self.assertEqual(err.count("step 3: batch skipped: policy skip"), 1, err)
        self.assertEqual(err.count("step 3: batch skipped: it is bad on rank 1"), 1, err)
        self.assertEqual(err.count(agrees), 1, err)
        self.assert_same_bits("wanted", "local")
        err = self.together("local-absent", 1, "healthy", options=options, run_dir="healthy")
        self.assertIn(agrees, err)
        self.assertNotIn("skipped", err)
        self.assert_same_bits("wanted", "healthy")
        self.assertNotIn(agrees, self.together("ddp", -1, "ddp", options=options, run_dir="ddp"))

    def test_ranks_whose_weights_are_lost_end_together(self):
        err = self.together("local-state", 1, "lost", options=("--level", "guard", "--on-incident", "skip"), code=4)
        self.assertEqual(err.count("is not finite, and skipping updates cannot repair it"), 2, err)
        self.assertEqual(err.count("a weight of rank 1 is not finite"), 1, err)

    def test_ranks_that_do_not_come_are_not_waited_for(self):
        err = self.together("local-short", 1, "short", options=("--level", "guard", "--on-incident", "skip"))
        self.assertIn("the ranks can't agree whether to leave updates out, so each decides for itself", err)
        self.assertEqual(err.count("step 3: batch skipped"), 2, err)

    def test_of_many_ranks_a_few_write_whole_files(self):
        options = ("--level", "watch", "--few-files-from", "5")
        err = self.together("ddp", 1, "many", options=options, run_dir="many", ranks=5)
        incidents = self.scratch / "many" / "incidents"
        there = sorted(file.name for file in incidents.iterdir() if "step-00000003" in file.name)
        self.assertEqual(there, ["step-00000003.first", *(f"step-00000003.r{rank}.h5" for rank in range(4)), "step-00000003.r4.row"], err)
        self.assertIn("no file of this rank: rank 1 was first to say that it is its own (aten::log", err)
        own = self.replay("diagnose", incidents / "step-00000003.r1.h5", "--no-fixes", "--no-files")["ranks"]
        self.assertEqual((own["local"], own["rows"], own["missing"]), (True, [4], []), own)
        self.assertIn("Rank 4 left a row instead of a file: 1 got it by a collective.", own["text"])

    def test_who_is_to_blame_is_tried_past_a_collective(self):
        """The file of the rank that did it says what one process on the same batches says; nothing of a fix rests on it."""
        self.program = "preferences.py"
        for level in LEVELS:
            with self.subTest(level=level):
                self.together("ddp", "bad", "seen", options=("--level", level), run_dir=f"run-{level}")
                self.assert_exit(self.observed(HERE / self.program, "alone", "bad", "alone", options=("--level", level), run_dir=f"alone-{level}"))
                (file,) = self.incidents(f"alone-{level}")
                alone, own = (self.replay("diagnose", path, "--no-files")
                              for path in (file, self.scratch / f"run-{level}" / "incidents" / "step-00000003.r1.h5"))
                self.assertEqual(alone["fix"]["verified"], True, alone)
                for said in (alone, own):
                    said["places"] = [(one["op"], one["module"]) for one in said["blame"]["set"]]
                    said["at"] = said["culprit"]["op"], said["culprit"]["module"]
                for key in ("places", "at", "cause", "phase"):
                    self.assertEqual(own[key], alone[key], own)
                self.assertEqual([one["op"] for one in own["blame"]["assumed"]], ["c10d::allreduce_"], own["blame"])
                self.assertEqual(alone["blame"]["assumed"], [])
                self.assertIn("what the other ranks gave to c10d::allreduce_", " ".join(own["not_tested"]))
                self.assertIn("nanquest-replay ranks", " ".join(own["not_tested"]))
                self.assertIsNone(own["fix"], own["fix"])
                self.assertEqual(own["precision"]["verdict"], None, own["precision"])
                other = self.replay("diagnose", self.scratch / f"run-{level}" / "incidents" / "step-00000003.r0.h5", "--no-files")
                self.assertEqual((other["cause"], other["ranks"]["first"]["rank"], other["blame"]["assumed"]), ("UNKNOWN", 1, []), other)

    def test_weights_that_are_averaged_name_where_they_come_from(self):
        """Rank 1 goes bad alone in step 3; after it weights are averaged, and step 4 begins with bad ones on rank 0."""
        self.together("local", 1, "seen", options=("--level", "watch"), run_dir="run")
        files = self.scratch / "run" / "incidents"
        own = self.replay("diagnose", files / "step-00000004.r0.h5", "--no-fixes", "--no-files")
        self.assertEqual((own["cause"], own["ranks"]["local"]), ("BAD_STATE", False), own)
        first = own["ranks"]["first"]
        self.assertEqual((first["rank"], first["step"], first["op"]), (1, 3, "aten::log"), own["ranks"])
        self.assertIn("Step 3 of rank 1 left the same parameter bad", own["ranks"]["text"])
        self.assertNotIn("which earlier step", " ".join(own["not_tested"]))
        # The rank that did it did not get it from another one; nor did one whose own earlier step did it.
        said = self.replay("diagnose", files / "step-00000003.r1.h5", "--no-fixes", "--no-files")
        self.assertEqual((said["ranks"]["first"]["rank"], said["ranks"]["local"]), (1, True), said["ranks"])
        self.assertNotIn("step", said["ranks"]["first"])
        (files / "step-00000003.r1.h5").rename(files / "step-00000003.r0.h5")
        mine = self.replay("diagnose", files / "step-00000004.r0.h5", "--no-fixes", "--no-files")
        self.assertEqual((mine["ranks"]["first"]["rank"], mine["ranks"]["local"]), (0, True), mine["ranks"])

    def test_who_was_first(self):
        for mode in MODES:
            for level in LEVELS:
                with self.subTest(mode=mode, level=level):
                    self.check(mode, level)


if __name__ == "__main__":
    if ALL:
        sys.argv.remove("--all")
    main()
