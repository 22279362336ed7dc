"""Models that are spread over two processes in ways of their own: fully_shard with its weights on the host, sequence and context
parallel, pipelines. The step, the rank, the operation; of a pipeline the micro-batch and the stage, of a weight the part of it.

usage: shapes_test.py      (at night: every way, both levels)
"""

from together import TogetherTest

from attached import NIGHT, main, nightly

LEVELS = ("watch", "trace") if NIGHT else ("watch",)
SPLIT = ("offload", "sequence", "context")
# The pass of the bad micro-batch on rank 0 and on rank 1; blocks[-1] of rank 1 is in the last stage.
PIPELINES = {"gpipe": ("micro-batch 3 of 4, stage 1 of 2", "micro-batch 3 of 4, stage 2 of 2"),
             "1f1b": ("micro-batch 3 of 4, stage 1 of 2", "micro-batch 3 of 4, stage 2 of 2"),
             "interleaved": ("micro-batch 3 of 4, stage 1 of 4", "micro-batch 3 of 4, stage 4 of 4")}
PARTS = {"offload": "rows 16 to 31 of 32, part 2 of 2 over mesh dimension shard",
         "sequence": "columns 32 to 63 of 64, part 2 of 2 over mesh dimension shard"}


class ShapesTest(TogetherTest):
    program = "shapes.py"

    def bad_step(self, way, fault, level):
        """(stderr, the verdicts of the ranks that wrote a file)"""
        self.clear("run")
        err = self.together(way, fault, "seen", options=("--level", level), run_dir="run")
        self.assertNotIn("the probe is off", err)
        files = {int(file.stem.rpartition(".r")[2]): file for file in self.incidents()}
        self.assertEqual({file.name[5:13] for file in files.values()}, {"00000005"}, err)
        for file in files.values():
            self.assert_bit_exact(file)
        return err, {rank: self.replay("diagnose", file, "--no-fixes") for rank, file in files.items()}

    def each(self, ways):
        return ((way, level) for way in ways for level in LEVELS)

    def one_of_a_pipeline(self, way, level):
        stages = PIPELINES[way]
        for fault, rank, cause, culprit in (("op", 1, "LOG_ZERO", "aten::log"), ("batch", 0, "BAD_DATA", "aten::native_layer_norm")):
            with self.subTest(way, fault=fault, level=level):
                err, said = self.bad_step(way, fault, level)
                own, other = said[rank], said.get(1 - rank)
                self.assertEqual((own["cause"], own["culprit"]["op"], own["culprit"].get("pass")), (cause, culprit, stages[rank]), own)
                if level == "watch":  # otherwise the values were not looked at while it ran
                    self.assertRegex(err, rf"{culprit} in \S+ \(forward, {stages[rank]}\)")
                if other is not None:
                    first = other["ranks"]["first"]
                    self.assertEqual((first["rank"], first["op"], first.get("pass")), (rank, culprit, stages[rank]), other["ranks"])
                    self.assertIn(stages[rank], other["ranks"]["text"])
        with self.subTest(way, fault="weight", level=level):
            _, said = self.bad_step(way, "weight", level)
            self.assertEqual((said[1]["cause"], said[1]["culprit"].get("pass")), ("BAD_STATE", stages[1].partition(", ")[2]), said[1])

    def test_a_pipeline(self):
        self.one_of_a_pipeline("1f1b", "watch")

    @nightly
    def test_every_pipeline(self):
        for way, level in self.each(PIPELINES):
            self.one_of_a_pipeline(way, level)

    @nightly
    def test_a_bad_batch(self):
        for way, level in self.each(SPLIT):
            with self.subTest(way, level=level):
                _, said = self.bad_step(way, "batch", level)
                own, other = said[1], said[0]
                self.assertEqual((own["cause"], own["origin"]), ("BAD_DATA", "input"), own)
                self.assertEqual(own["samples"]["poison"], [3], own)
                self.assertEqual((other["ranks"]["local"], other["ranks"]["first"]["rank"]), (False, 1), other["ranks"])

    @nightly
    def test_a_bad_operation(self):
        for way, level in self.each(SPLIT):
            with self.subTest(way, level=level):
                _, said = self.bad_step(way, "op", level)
                own, other = said[1], said[0]
                self.assertEqual((own["cause"], own["culprit"]["op"], own["culprit"]["module"]), ("LOG_ZERO", "aten::log", "1.spot"), own)
                self.assertEqual((other["ranks"]["local"], other["ranks"]["first"]["rank"]), (False, 1), other["ranks"])

    def one_bad_weight(self, way, level):
        err, said = self.bad_step(way, "weight", level)
        own = said[1]
        self.assertEqual((own["cause"], own["culprit"]["tensor"]), ("BAD_STATE", "1.down.weight"), own)
        self.assertEqual(own["culprit"].get("part"), PARTS.get(way), own["culprit"])
        if way in PARTS and level == "watch":
            self.assertIn(f"parameter 1.down.weight ({PARTS[way]}) held 1 x nan", err)
        if 0 in said:
            self.assertEqual((said[0]["ranks"]["local"], said[0]["ranks"]["first"]["rank"]), (False, 1), said[0]["ranks"])

    def test_a_part_of_a_weight(self):
        self.one_bad_weight("offload", "watch")

    @nightly
    def test_every_bad_weight(self):
        for way, level in self.each(SPLIT):
            with self.subTest(way, level=level):
                self.one_bad_weight(way, level)

    @nightly
    def test_healthy_training_is_what_it_is_without_the_probe(self):
        for way, level in self.each((*SPLIT, *PIPELINES)):
            with self.subTest(way, level=level):
                self.together(way, "healthy", "plain")
                self.clear("run")
                err = self.together(way, "healthy", "seen", options=("--level", level), run_dir="run")
                self.assertEqual((self.incidents(), [line for line in err.splitlines() if line.startswith("nanquest: ")]), ([], []), err)
                self.assert_same_bits("plain", "seen")


if __name__ == "__main__":
    main()
