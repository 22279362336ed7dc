"""Weights that DistributedDataParallel should keep alike: if one rank's differ, its weight and rank are named; where they may differ,
nothing is reported. Real processes over gloo (replicas.py), three where it must be known which of them differs.
"""

import json
import re
import subprocess
import sys

from together import TogetherTest

from attached import BIN, PACKAGE, main, nightly

sys.path.insert(0, str(PACKAGE))
from nanquest.ranks import differing_ranks, exchange  # noqa: E402

STEPS = 12  # of each way
LINE = re.compile(r"(?m)^nanquest: (?:rank \d+: )?step (\d+): replicas differ: (.*)$")
# Weights are alike on all ranks in the end.
ALIKE = ("plain", "accumulates", "static", "unused", "two_optimizers", "compressed", "sharded_states", "slow", "late", "uneven")
# Each rank may have its own.
APART = ("ignored", "frozen", "local", "local_no_sync", "post_local", "own_hook", "own_gradients")


def bare(text):
    """Without the class that names begin with where the model of the way before still lives."""
    return re.sub(r"\bNet\d*\.", "", text)


class ReplicasTest(TogetherTest):
    program = "replicas.py"

    def said(self, *ways, every=1, ranks=3, run_dir="run", options=()):
        """(step, what follows) of each line, and all that was said."""
        text = self.together(run_dir, ",".join(ways), options=("--compare-replicas", str(every), *options), ranks=ranks, run_dir=run_dir)
        return [(int(number), bare(what)) for number, what in LINE.findall(text)], text

    def state(self, run, way, rank):
        import torch
        return {name: value.numpy().tobytes() for name, value in torch.load(self.scratch / f"{run}.{way}.{rank}").items()}

    def differing(self, run, way, ranks=3):
        """rank -> weights of it that are not rank 1's, of what was saved; buffers are not compared."""
        other = self.state(run, way, 1)
        return {rank: [name for name, value in self.state(run, way, rank).items() if value != other[name] and "running" not in name]
                for rank in range(ranks)}

    def test_a_bit_of_one_rank(self):
        lines, text = self.said("plain", "flip:2:5", "flip_frozen:0:3", "loaded_on_one", "late_moments", "plain")
        self.assertEqual(self.differing("run", "flip"), {0: [], 1: [], 2: ["middle.weight"]})  # so it really was
        self.assertEqual(self.differing("run", "flip_frozen"), {0: ["middle.weight"], 1: [], 2: []})
        first = "is not that of the other 2 ranks (first seen; compared before every update)"
        self.assertEqual(len(self.differing("run", "late_moments")[2]), 9)
        flip, frozen, loaded, late = (STEPS * place for place in (1, 2, 3, 4))
        self.assertEqual(lines, [
            (flip + 5, f"middle.weight of rank 2 {first}"),
            (flip + 6, "1 of 9 weights, all of rank 2, the first of them middle.weight"),
            (frozen + 3, f"middle.weight of rank 0 {first}"),
            (frozen + 4, "1 of 9 weights, all of rank 0, the first of them middle.weight"),
            (loaded, f"last.weight of rank 0 {first}"),
            (loaded + 1, "1 of 9 weights, all of rank 0, the first of them last.weight"),
            (late + 5, "own is not the same on ranks 0, 1, 2, of which no more than half agree (first seen; compared before every update)"),
            (late + 6, "9 of 9 weights, the first of them own")], text)
        told = json.loads((self.scratch / "run" / "manifest.json").read_text())["replicas"]
        self.assertEqual([(one["step"], one["ranks"], bare(one["tensor"])) for one in told[:3]],
                         [(flip + 5, [2], "middle.weight"), (flip + 6, [2], "middle.weight"),
                          (frozen + 3, [0], "middle.weight")], told)
        self.assertEqual([f"step {number}: replicas differ: {what}" for number, what in lines], [bare(one["text"]) for one in told])
        self.assertEqual(re.findall(r"(?m)^rank (\d) is told: (.*)$", text), [("0", f"'' {told[0]['text']}")])
        self.assertIn(f"nanquest: rank 0: no incident in {6 * STEPS} steps; replicas differ since step {flip + 5}", text)

    @nightly
    def test_two_ranks_and_turns(self):
        lines, text = self.said("large:1:4", every=3, ranks=2)
        self.assertEqual(self.differing("run", "large", 2), {0: ["middle.weight"], 1: []})
        self.assertEqual(len(lines), 2, text)
        (step, what), (again, more) = lines
        self.assertTrue(4 <= step < 4 + 3, text)  # each weight has its turn once in three
        self.assertEqual(what, "middle.weight is not the same on ranks 0, 1; of two ranks it can't be known which is wrong (first seen; compared "
                         "every 3 updates)")
        self.assertTrue(step + 3 <= again <= step + 4, text)
        self.assertEqual(more, "1 of 9 weights, the first of them middle.weight")

    def test_healthy(self):
        ways = ",".join((*ALIKE, *APART))
        self.together("alone", ways, ranks=3)
        lines, text = self.said(*ALIKE, *APART)
        self.assertEqual(lines, [], text)
        self.assertNotIn("not compared", text)
        for way in (*ALIKE, *APART):
            for rank in range(3):
                self.assertEqual(self.state("run", way, rank), self.state("alone", way, rank), (way, rank))
        for way in ALIKE:
            self.assertEqual(self.differing("run", way), {0: [], 1: [], 2: []}, way)
        for way in APART:  # else silence would prove nothing
            self.assertTrue(any(self.differing("run", way).values()) or way == "post_local", way)

    def judged(self, run):
        """What `nanquest-replay ranks RUN` says, as JSON and as text."""
        said = [subprocess.run([str(BIN / "nanquest-replay"), "-q", *more, "ranks", "--no-files", run], cwd=self.scratch, text=True,
                               capture_output=True, timeout=300) for more in (("--json",), ())]
        self.assertEqual([each.returncode for each in said], [1, 1], said[0].stderr)
        return json.loads(said[0].stdout), said[1].stdout

    @nightly
    def test_files_of_a_desynchronised_rank(self):
        self.said("spoil:2:5", options=("--level", "watch"))
        verdict, text = self.judged("run")
        self.assertEqual((verdict["step"], verdict["first"]["rank"], verdict["first"]["tensor"]), (5, 2, "middle.weight"), verdict)
        replicas = verdict["replicas"]
        self.assertEqual((replicas["ranks"], replicas["compared"], replicas["different"]), ([0, 1, 2], 9, 1))
        self.assertEqual(replicas["first"], {"tensor": "middle.weight", "element": 7, "odd": [2], "known": True})
        self.assertEqual(verdict["alone"], {"why": "desynchronised", "rank": 2})
        self.assertIn("middle.weight of rank 2 is not that of ranks 0, 1 when the step begins: element 7 is the first; 1 of 9 weights differs",
                      text)

    def test_files_of_a_processor_that_fails(self):
        lines, said = self.said("wrong_product:1:4", options=("--level", "watch"))
        verdict, text = self.judged("run")
        self.assertEqual((verdict["step"], verdict["replicas"]["different"]), (4, 0), verdict)
        alone = verdict["alone"]
        self.assertEqual((alone["why"], alone["rank"], alone["op"], alone["module"], alone["witness"]), ("hardware", 1, "aten::mm", "middle", 0))
        self.assertIn("rank 1: aten::mm in middle", text)
        self.assertIn("replayed it gives bit for bit what rank 0 made there", text)

    def test_nobody_waits(self):
        lines, text = self.said("one_without", "dies")
        self.assertEqual(lines, [], text)
        self.assertEqual(self.differing("run", "one_without"), {0: ["middle.weight"], 1: [], 2: ["middle.weight"]})
        self.assertEqual(sorted(re.findall(r"(?m)^rank (\d) heard of it from its peer$", text)), ["0", "1"], text)

    @nightly
    def test_switched_off(self):
        lines, text = self.said("flip:2:5", every=0)
        self.assertEqual((lines, "replicas" in text), ([], False), text)


class OddTest(TogetherTest):
    def test_who_is_odd(self):
        self.assertEqual(differing_ranks.odd_ones({0: 7, 1: 7, 2: 8}), ([2], True))
        self.assertEqual(differing_ranks.odd_ones({0: 9, 3: 7, 5: 7, 6: 8, 8: 7}), ([0, 6], True))
        for equal in ({0: 7, 1: 8}, {0: 7, 1: 7, 2: 8, 3: 8}, {0: 1, 1: 2, 2: 3}):
            self.assertEqual(differing_ranks.odd_ones(equal), (sorted(equal), False))

    def test_what_is_told_and_how_often(self):
        found = differing_ranks.Found([0, 1, 2], turns=4)
        found.part(3, 0, True, [5, 5, 5])
        self.assertIsNone(found.news(1))
        found.part(7, 0, True, [5, 6, 5])
        found.part(6, 0, True, [5, 5, 6])
        news = found.news(2)
        self.assertEqual((news.first, news.ranks, news.known, news.again), (6, [2], True, False))
        found.part(1, 0, True, [5, 6, 5])
        self.assertIsNone(found.news(5))
        news = found.news(6)
        self.assertEqual((news.first, news.ranks, news.differ, news.again), (1, [1, 2], 3, True))
        found.part(2, 0, True, [5, 6, 5])
        self.assertIsNone(found.news(60))

    def test_what_does_not_train_must_have_been_alike(self):
        found = differing_ranks.Found([0, 1, 2], turns=1)
        found.part(0, 0, False, [1, 2, 3])
        self.assertIsNone(found.news(1))
        found.part(0, 4096, False, [1, 1, 1])
        found.part(0, 4096, False, [1, 1, 3])
        self.assertEqual(found.news(2).ranks, [2])

    def test_files_instead_of_a_store(self):
        ranks = [exchange._Files(self.scratch, "0", rank, [0, 1]) for rank in (0, 1)]
        ranks[0].put(1, b"mine")
        self.assertIsNone(ranks[0].all(1))  # the other has left nothing yet
        ranks[1].put(1, b"yours")
        self.assertEqual([each.all(1) for each in ranks], [[b"mine", b"yours"]] * 2)
        exchange._Files(self.scratch, "0", 1, [0, 1])  # of a new run
        self.assertIsNone(ranks[0].all(1))


if __name__ == "__main__":
    main()
