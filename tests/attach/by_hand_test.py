"""Programs without an optimizer, often without modules: which of their derivatives end a step, and what is found in the step that is
bad. In each, step 12 is."""

import collections

from attached import PROGRAMS, AttachTest, by_day, main

Case = collections.namedtuple("Case", "cause op phase", defaults=[None] * 3)

BAD = 12
CASES = {
    "linear": Case("DOMAIN", "aten::sqrt", "forward"),
    "rebound": Case("SINGULAR_GRAD", None, "backward"),
    "own_optimizer": Case("DOMAIN", "aten::sqrt", "forward"),
    "game": Case("DIV_ZERO", "aten::div", "forward"),
    "params": Case("EXP_OVERFLOW", "aten::exp", "forward"),
    "func_sgd": Case("BAD_DATA", None, "input"),
    "adam": Case(None, "aten::div", None),
    "tape": Case("LOG_ZERO", "aten::log", "forward"),
    "lbfgs": Case("DIV_ZERO", "aten::div", None),
    "ratings": Case(None, None, None),
    "attacked": Case("BAD_DATA", None, "input"),
    "meta": Case(None, None, None),
}
QUIET = ("evolution", "slopes", "func_slopes")


class ByHandTest(AttachTest):
    def run_all(self, level, names):
        process = self.plain(PROGRAMS / "run_loops.py", "by_hand", "runs", level, *names)
        self.assert_exit(process)
        self.assertNotIn("off", process.stderr)
        for name in names:
            self.assertIn(f"{name}: 0", process.stdout, process.stderr)
        return process

    def check(self, name, case, process):
        found = self.incidents(f"runs/{name}")
        self.assertEqual([file.name for file in found], [f"step-{BAD:08d}.r0.h5"], process.stderr)
        self.assert_bit_exact(found[0])
        verdict = self.replay("diagnose", found[0])
        said = Case((verdict.get("likely") or verdict)["cause"], verdict["culprit"]["op"], verdict["phase"])
        for key, wanted in case._asdict().items():
            if wanted is not None:
                self.assertEqual(getattr(said, key), wanted, verdict["explanation"])

    def test_steps_without_an_optimizer(self):
        for level in by_day(("trace",), ("watch",)):
            process = self.run_all(level, [*CASES, *QUIET])
            for name in QUIET:
                with self.subTest(name):
                    self.assertEqual(self.incidents(f"runs/{name}"), [], "nothing is trained there")
            for name, case in CASES.items():
                with self.subTest(name, level=level):
                    self.check(name, case, process)
            self.clear("runs")

    def test_a_program_without_any_derivative_is_told_to_be_unobserved(self):
        process = self.observed(PROGRAMS / "by_hand" / "evolution.py")
        self.assert_exit(process)
        self.assertIn("no training step was made", process.stderr)


if __name__ == "__main__":
    main()
