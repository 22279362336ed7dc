#!/usr/bin/env python3
"""The bench's own sums: marks of made-up verdicts, intervals against the literature, plans that come out the same."""

import json
import math
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "common")]

import plan  # noqa: E402
import run  # noqa: E402
import score  # noqa: E402
import tables  # noqa: E402
from truth import Case, Program, Truth  # noqa: E402

TRUTH = Truth(cause="DIV_ZERO", also=("DOMAIN",), phase="forward", op=("div", "mul"), module=("{place}.inner",), origin="op", precision="structural",
              fixes=("op",), harm=("loss", "gradient"))
SAID = {"step": 4, "phase": "forward", "op": "div", "module": "middle.inner", "origin": "op", "cause": "DIV_ZERO", "precision": "structural",
        "fix": "x", "bit_exact": True}


def play(truth=TRUTH, **program):
    return plan.Play("family", "file", Case("case", object, Program(**program), truth))


def result(incidents=(4,), **said):
    return {"incidents": list(incidents), "said": dict(SAID, **said) if incidents else None, "finite_after": True}


class Scoring(unittest.TestCase):
    def test_all_right(self):
        marks = score.judged(play(), "watch", result())
        self.assertEqual({k for k, v in marks.items() if not v}, {"alarm", "wrong_cause"})
        self.assertEqual(set(marks), {*score.MEASURES, "wrong_cause", "alarm"})

    def test_each_measure_alone(self):
        for field, value, measure in (("step", 5, "step"), ("op", "add", "phase_op"), ("phase", "backward", "phase_op"), ("module", "late.inner", "module"),
                                      ("origin", "input", "origin"), ("precision", "curable", "precision"), ("fix", None, "fix"),
                                      ("bit_exact", False, "bit_exact")):
            marks = score.judged(play(), "watch", result(**{field: value}))
            self.assertEqual([m for m in score.MEASURES if not marks[m]], [measure], field)

    def test_unknown_is_not_wrong(self):
        for said, right, wrong in (("DOMAIN", True, False), ("UNKNOWN", False, False), ("LOG_ZERO", False, True)):
            marks = score.judged(play(), "watch", result(cause=said))
            self.assertEqual((marks["cause"], marks["wrong_cause"]), (right, wrong))

    def test_missed_and_early(self):
        missed = score.judged(play(), "watch", result(()))
        self.assertEqual((missed["found"], missed["fix"], missed["alarm"]), (False, False, False))
        early = score.judged(play(), "watch", result((2, 4)))
        self.assertEqual((early["found"], early["alarm"]), (False, True))

    def test_healthy(self):
        self.assertEqual(score.judged(play(Truth()), "trace", result(())), {"alarm": False})
        self.assertEqual(score.judged(play(Truth()), "trace", result((1,))), {"alarm": True})

    def test_silence_is_for_watch(self):
        silent = play(Truth(**{**vars(TRUTH), "harm": ("wrong",)}))
        self.assertNotIn("found", score.judged(silent, "trace", result(())))
        self.assertIs(score.judged(silent, "watch", result(()))["found"], False)

    def test_caught_only_of_good_weights(self):
        self.assertNotIn("caught", score.judged(play(Truth(**{**vars(TRUTH), "origin": "parameter"})), "trace", result()))

    def test_wilson(self):
        # 81 of 263: Newcombe, R. G. (1998), Statistics in Medicine 17, table I, method 3.
        low, high = tables.wilson(81 / 263, 263)
        self.assertAlmostEqual(low, 0.2553, 4)
        self.assertAlmostEqual(high, 0.3662, 4)
        self.assertEqual(tables.wilson(0.0, 0), (0.0, 1.0))

    def test_families_count_alike(self):
        rows = [{"family": "a", "marks": {"found": True}}] * 9 + [{"family": "b", "marks": {"found": False}}]
        share, families, programs = tables.by_family(rows, "found")
        self.assertTrue(math.isclose(share, 0.5))
        self.assertEqual((families, programs), (2, 10))

    def test_counts_tell_no_names(self):
        row = {"name": "secret/case", "family": "secret", "label": "DIV_ZERO", "level": "watch", "marks": {"found": True}, "differences": ["secret"]}
        self.assertNotIn("secret", json.dumps(run.counts([row])))


class Planning(unittest.TestCase):
    def test_all_labels_and_enough_programs(self):
        plays = plan.plays("seen", 600)
        self.assertGreaterEqual(len(plays), 600)
        self.assertEqual([p.name for p in plays], [p.name for p in plan.plays("seen", 600)])
        self.assertEqual(len({p.name for p in plays}), len(plays))
        said = {p.case.truth.cause for p in plays}
        words = {"ALL_MASKED_ROW", "MASK_OVERFLOW", "FP16_OVERFLOW", "EXP_OVERFLOW", "LOG_ZERO", "DOMAIN", "DIV_ZERO", "EPS_UNDERFLOW", "EMPTY_REDUCTION",
                 "ZERO_TIMES_INF", "INF_LOGIT", "SINGULAR_GRAD", "UNSELECTED_BRANCH", "LOGSPACE_INF_GRAD", "DEGENERATE_LINALG", "INFEASIBLE_TARGET",
                 "NORM_OVERFLOW", "LOSS_SCALE", "BAD_DATA", "BAD_STATE", "UNINITIALIZED", "BAD_SETTING", "RACE", "HARDWARE", ""}
        self.assertEqual(said, words)

    def test_sample_spreads(self):
        chosen = plan.sample(plan.plays("seen"), 12, 3)
        self.assertEqual(len({p.family for p in chosen}), 12)

    def test_another_seed_varies_otherwise(self):
        self.assertNotEqual([p.name for p in plan.plays("seen", 300, 1)], [p.name for p in plan.plays("seen", 300, 2)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
