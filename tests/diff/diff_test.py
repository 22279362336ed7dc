"""`nanquest diff`: differences that were planted are named, and rounding alone is no finding."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attach"))
from attached import BIN, AttachTest, by_day, main, nightly  # noqa: E402
from truth import BASES, INSIDE_REGIONS, OF_FORMATS, OF_RANKS, OVER_RANKS, PLANTED  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, OF_TWO_RANKS, ROUNDING, FORMATS = HERE / "planted.py", HERE / "planted_ranks.py", HERE / "rounding.py", HERE / "formats.py"
ONE_OR_TWO = HERE / "over_ranks.py"
REGIONS = HERE / "regions.py"
OVER_RANKS_BY_DAY = ("fsdp2", "tensor no-all-reduce", "ddp loss-over-ranks")
PLANTED_BY_DAY = ("rms-eps", "missing-bias", "rope-base")
ROUNDING_BY_DAY = ("channels-last", "batch-split")


class DiffTest(AttachTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.shared_folder()

    def recorded(self, program, *words):
        """The first step of the program with these words, of rank 0; run once."""
        return self.run_of(program, *words) / "recordings" / "step-00000000.r0.h5"

    def run_of(self, program, *words, steps="0"):
        """Its run directory."""
        run = self.folder / "-".join([program.stem, *words, steps])
        if not run.exists():
            start = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2") if program == OF_TWO_RANKS or (program == ONE_OR_TWO and words != ("one",)) else ()
            self.assert_exit(self.observed(*start, program, *words, run_dir=run, options=("--record-steps", steps)))
        return run

    def diff(self, a, b, *options):
        return subprocess.run([str(BIN / "nanquest-replay"), "diff", str(a), str(b), "-q", *options], text=True,
                              capture_output=True, timeout=600, env={**os.environ, "NO_COLOR": "1"})

    def document(self, a, b, code, *options):
        process = self.diff(a, b, "--json", *options)
        self.assert_exit(process, code)
        return json.loads(process.stdout)

    def test_planted_differences_are_named_first(self):
        for name in by_day(PLANTED_BY_DAY, [n for n in PLANTED if n not in PLANTED_BY_DAY]):
            with self.subTest(name):
                kinds, words = PLANTED[name]
                program = OF_TWO_RANKS if name in OF_RANKS else PROGRAM
                base = self.recorded(program, *([BASES[name]] if name in BASES else []))
                report = self.document(base, self.recorded(program, name), 1)
                first = report["findings"][0]
                self.assertIn(first["kind"], kinds, first)
                for word in words:
                    self.assertIn(word, first["text"])
                self.assertTrue(report["complete"], report)

    @nightly
    def test_planted_formats_are_named(self):
        for name, (in_a, in_b, operator) in OF_FORMATS.items():
            with self.subTest(name):
                report = self.document(self.recorded(PROGRAM, BASES[name]), self.recorded(PROGRAM, name), 0)
                self.assertEqual((report["formats"]["in_a"], report["formats"]["in_b"]), (in_a, in_b))
                self.assertIn(operator, report["formats"]["first"])
                self.assertTrue(report["fp64"]["alike"], report["fp64"])

    def test_rounding_alone_is_no_finding(self):
        for name in by_day(ROUNDING_BY_DAY, ("threads", "compiled")):
            with self.subTest(name):
                report = self.document(self.recorded(ROUNDING, name, "A"), self.recorded(ROUNDING, name, "B"), 0)
                self.assertTrue(report["alike"], report)
                self.assertEqual([end["name"] for end in report["ends"] if end["name"] != "loss"],
                                 ["gradients", "updated weights"])
                self.assertTrue(all(end["compared"] > 5 or end["name"] == "loss" for end in report["ends"]), report)

    def test_one_rank_against_two(self):
        """Shards and parts of a sum are put together; what then differs is named, from both sides."""
        one = self.run_of(ONE_OR_TWO, "one")
        for name in by_day(OVER_RANKS_BY_DAY, [n for n in OVER_RANKS if n not in OVER_RANKS_BY_DAY]):
            with self.subTest(name):
                kind, words, tried = OVER_RANKS[name]
                two = self.run_of(ONE_OR_TWO, *name.split())
                report = self.document(one, two, 1 if kind else 0)
                self.assertEqual(report["ranks"], {"side": "B", "put_together": [0, 1]})
                compared = {end["name"]: end["compared"] for end in report["ends"]}
                self.assertEqual(compared, {"loss": 1, "gradients": 27, "updated weights": 27})
                self.assertEqual(report["alike"], not kind, report["findings"])
                if not kind:
                    continue
                self.assertEqual([found["kind"] for found in report["findings"]], [kind], report["findings"])
                found, = report["findings"]
                for word in words:
                    self.assertIn(word, found["text"])
                self.assertIn(tried, found["tried"])
                turned, = self.document(two, one, 1)["findings"]
                self.assertEqual((turned["op_a"], turned["op_b"], turned["in_a"]), (found["op_b"], found["op_a"], found["in_b"]))

    @nightly
    def test_each_rank_is_compared_with_its_own(self):
        """Rank 0 only gets other values from the one whose epsilon differs."""
        plain, again, planted = (self.run_of(OF_TWO_RANKS, *words) for words in ((), ("plain",), ("eps-on-rank-1",)))
        runs = self.document(plain, again, 0)["runs"]
        self.assertEqual((runs["rank"], runs["ranks_alike"], runs["ranks_differ"]), (0, [0, 1], []))
        report = self.document(plain, planted, 1)
        self.assertEqual((report["runs"]["rank"], report["runs"]["ranks_alike"], report["runs"]["ranks_differ"]), (1, [], [0, 1]))
        first = report["findings"][0]
        self.assertEqual((first["kind"], first["name"], first["module"], first["in_b"]), ("argument", "eps", "2.norm", "0.001"))

    @nightly
    def test_what_only_one_side_has_is_named_with_that_side(self):
        one, two = self.run_of(ONE_OR_TWO, "one"), self.run_of(ONE_OR_TWO, "ddp", "frozen")
        for a, b, of_one, of_two in ((one, two, "A", "B"), (two, one, "B", "A")):
            report = self.document(a, b, 0)
            self.assertEqual(report["ranks"]["side"], of_two)
            self.assertEqual([note for note in report["notes"] if "3.bias" in note],
                             [f"{group}: only {of_one} has one of 3.bias" for group in ("gradients", "updated weights")])

    @nightly
    def test_other_formats_over_ranks_are_not_judged(self):
        process = self.diff(self.run_of(ONE_OR_TWO, "one"), self.run_of(ONE_OR_TWO, "fsdp2", "bf16"))
        self.assert_exit(process, 2)
        self.assertIn("one computes in Float and the other in BFloat16, first aten::embedding", process.stderr)

    @nightly
    def test_a_difference_inside_a_compiled_region(self):
        eager = self.recorded(REGIONS, "eager")
        self.assertTrue(self.document(eager, self.recorded(REGIONS, "compiled"), 0)["alike"])
        for name, (operators, module, before) in INSIDE_REGIONS.items():
            with self.subTest(name):
                compiled = self.recorded(REGIONS, "compiled", name)
                found = self.document(eager, compiled, 1)["findings"][0]
                self.assertEqual((found["kind"], found["module"]), ("region", module), found)
                self.assertIn(found["op"], operators)
                self.assertIn(before, found["text"])
                turned = self.document(compiled, eager, 1)["findings"][0]
                self.assertEqual((turned["kind"], turned["op_a"], turned["op_b"]), ("region", found["op_b"], found["op_a"]))
        first = self.document(eager, self.recorded(REGIONS, "compiled", "loss"), 1)["findings"][0]
        self.assertNotEqual(first["kind"], "region", first)

    def test_the_same_step_of_the_same_program_is_alike(self):
        plain = self.recorded(PROGRAM)
        process = self.diff(plain, plain)
        self.assert_exit(process, 0)
        self.assertIn("ALIKE", process.stdout)
        self.assertLessEqual(len(process.stdout.splitlines()), 10)

    def test_formats_alone_are_no_finding_and_hide_none(self):
        fp32, bf16 = self.recorded(FORMATS, "fp32"), self.recorded(FORMATS, "bf16")
        report = self.document(fp32, bf16, 0)
        self.assertEqual((report["formats"]["in_a"], report["formats"]["in_b"]), ("Float", "BFloat16"))
        self.assertIn("addmm", report["formats"]["first"])
        self.assertTrue(report["fp64"]["alike"], report["fp64"])
        # An epsilon that changes less than bfloat16 rounds.
        report = self.document(fp32, self.recorded(FORMATS, "bf16", "3e-5"), 1)
        self.assertTrue(report["fp64"]["found_there"], report)
        first = report["findings"][0]
        self.assertEqual((first["kind"], first["name"], first["in_b"]), ("argument", "eps", "3e-05"))
        self.assertIsNone(self.document(fp32, self.recorded(FORMATS, "fp32", "1e-5"), 0)["formats"])

    def test_of_two_runs_the_newest_step_is_compared_and_where_states_part_is_said(self):
        a, b = (self.run_of(FORMATS, "fp32", *eps, steps="0,1,2") for eps in ((), ("1e-3",)))
        report = self.document(a, b, 1)
        runs = report["runs"]
        self.assertEqual((runs["rank"], runs["steps"], runs["differs_before"], report["step_a"]), (0, [0, 1, 2], 1, 2))
        self.assertEqual((runs["parameter"], runs["buffer"]), ("0.weight", ""))
        self.assertIn("momentum", runs["optimizer"])
        self.assertEqual((runs["equal_losses"], runs["loss"]["step"]), (0, 0))
        report = self.document(a, b, 1, "--step", "0")
        self.assertEqual((report["runs"]["steps"], report["runs"]["differs_before"], report["step_b"]), ([0], None, 0))
        page = self.folder / "diff.html"
        process = self.diff(a, b, "--html", str(page))
        self.assert_exit(process, 1)
        self.assertIn("different at the start of step 1: first parameter 0.weight", process.stdout)
        self.assertIn("<td>argument</td>", page.read_text())
        self.assert_exit(self.diff(a, self.folder / "nothing"), 2)
        self.assert_exit(self.diff(a, self.recorded(FORMATS, "fp32")), 2)

    def test_all_operations_are_listed_where_asked(self):
        a, b = self.recorded(FORMATS, "fp32"), self.recorded(FORMATS, "fp32", "1e-3")
        self.assertNotIn("operations", self.document(a, b, 1))
        report = self.document(a, b, 1, "--full")
        operations = report["operations"]
        both = [each for each in operations if each["a"] is not None and each["b"] is not None]
        self.assertEqual((len(both), len(operations)), (report["in_common"], report["ops_a"]))
        self.assertEqual([each["a"] for each in operations], sorted(each["a"] for each in operations))
        first = next(each for each in operations if each.get("beyond"))
        found = report["findings"][0]
        self.assertEqual((first["a"], first["b"], first["op"]), (found["op_a"], found["op_b"], "aten::native_layer_norm"))
        self.assertAlmostEqual(first["distance"] / found["distance"], 1, places=6)
        before = [each for each in operations if each["a"] < first["a"] and "distance" in each]
        self.assertTrue(before and all(each["distance"] <= 8 * each["rounding"] for each in before), before)
        self.assertEqual(report["lines"][0], {"head": "DIFFERS", "text": found["text"]})
        self.assertEqual(found["tried"], "with B's eps A gives B's value")

    def test_two_programs_are_said_to_be_two(self):
        process = self.diff(self.recorded(PROGRAM), self.recorded(ROUNDING, "channels-last", "A"))
        self.assert_exit(process, 1)
        self.assertIn("% of operations in common", process.stdout)
        self.assertLessEqual(len(process.stdout.splitlines()), 2)

    def test_what_is_no_recording_is_refused(self):
        broken = self.folder / "broken.h5"
        broken.write_bytes(b"no snapshot")
        self.assert_exit(self.diff(broken, broken), 3)


if __name__ == "__main__":
    main()
