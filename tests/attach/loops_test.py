"""What training loops do: steps, phases and modules are found from what runs, whatever the loop looks like."""

import collections
import json

from attached import PROGRAMS, AttachTest, by_day, main, stands

Case = collections.namedtuple("Case", "step cause op module phase", defaults=[None] * 5)

CASES = {
    "accumulation": Case(2, module="0", phase="input"),
    "pair": Case(3, op="aten::sqrt", module="Generator", phase="forward"),
    "halves": Case(2, "SINGULAR_GRAD", op="aten::div", phase="backward"),
    "closure": Case(2, "BAD_DATA", op="aten::mse_loss", phase="input"),
    "evaluation": Case(3, "BAD_DATA", module="0", phase="input"),
    "checkpointing": Case(2, "DIV_ZERO", op="aten::div", module="blocks.1", phase="forward"),
    "rebuilt": Case(5, "BAD_DATA", module="0", phase="input"),
    "penalty": Case(2, "SINGULAR_GRAD", phase="backward"),
    "twice": Case(2, "LOG_ZERO", op="aten::log", phase="forward"),
    "prompt": Case(2, "LOG_ZERO", op="aten::log", phase="forward"),
    "by_hand": Case(3, op="aten::sqrt", phase="forward"),
    "rollout": Case(3, "DIV_ZERO", op="aten::div", phase="forward"),
    "meta": Case(3, "FP16_OVERFLOW"),
    "unread": Case(3, "BAD_STATE", op="aten::where", phase="input"),
    "functional": Case(3, "EXP_OVERFLOW", op="aten::exp", phase="forward"),
    "given_up": Case(2, "BAD_DATA", phase="input"),
    "refused": Case(2, op="aten::pow", phase="forward"),
    "norm": Case(2, op="aten::_foreach_norm", phase="optimizer"),
    "silent": Case(2, op="aten::pow", module="Normalised", phase="forward"),
    "sampler": Case(None),
    "saturated": Case(None),
    "update": Case(2, op="aten::addcdiv_", phase="optimizer"),
    "scaled": Case(3, "BAD_DATA", phase="input"),
    "endless_scale": Case(3, "LOSS_SCALE", phase="input"),
    "shared_backward": Case(2, "BAD_DATA", module="0", phase="input"),
    "thrown_away": Case(2, "BAD_DATA", phase="input"),
    "restored": Case(2, "BAD_DATA", phase="input"),
}
EVERY = {"shared_backward": (2, 4), "thrown_away": (2, 4, 8)}  # files of these steps, and no others


class LoopsTest(AttachTest):
    def run_all(self, level, cases=CASES):
        process = self.plain(PROGRAMS / "run_loops.py", "loops", "runs", level, *cases)
        self.assert_exit(process)
        ended = dict(line.split(": ") for line in process.stdout.splitlines() if line.count(": ") == 1 and "Loss" not in line)
        self.assertEqual(ended, {name: "1" if name == "refused" else "0" for name in cases}, process.stderr)
        self.assertNotIn("off", process.stderr)
        return process

    def check(self, run, case):
        found = self.incidents(run)
        if case.step is None:
            self.assertEqual(found, [], "a healthy program")
            return
        self.assertTrue(found, "no incident")
        self.assertEqual(found[0].name, f"step-{case.step:08d}.r0.h5")
        for steps in [EVERY[name] for name in EVERY if run.endswith(f"/{name}")]:
            self.assertEqual([file.name for file in found], [f"step-{step:08d}.r0.h5" for step in steps])
        self.assert_bit_exact(found[0])
        verdict = self.replay("diagnose", found[0])
        culprit = {key: verdict["culprit"][key] for key in ("op", "module")}
        # Where the evidence is too weak to name a cause, the likely one is meant.
        said = {"cause": (verdict.get("likely") or verdict)["cause"], "phase": verdict["phase"]}
        for key, wanted in (("cause", case.cause), ("phase", case.phase)):
            if wanted is not None:
                self.assertEqual(said[key], wanted, (culprit, verdict["explanation"]))
        for key in ("op", "module"):
            if getattr(case, key) is not None:
                self.assertEqual(culprit[key], getattr(case, key), verdict["explanation"])

    def test_loops(self):
        """By day what only level watch finds, or ignores; all others are found by the standing trace too."""
        cases = by_day(("silent", "saturated", "unread"), [name for name in CASES if name not in ("silent", "saturated", "unread")])
        self.run_all("watch", cases)
        for name in cases:
            with self.subTest(name):
                self.check(f"runs/{name}", CASES[name])

    def test_loops_that_nobody_watches(self):
        self.run_all("standing")
        for name, case in CASES.items():
            with self.subTest(name):
                if name == "silent":  # found only at level watch
                    self.assertEqual(self.incidents(f"runs/{name}"), [])
                    continue
                self.check(f"runs/{name}", case)
                self.assertTrue(case.step is None or stands(self.incidents(f"runs/{name}")[0]))

    def test_memory_that_changes_between_two_reads(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                process = self.observed(PROGRAMS / "overtaken.py", options=("--level", level), run_dir=f"overtaken-{level}")
                self.assert_exit(process)
                found = self.incidents(f"overtaken-{level}")
                self.assertEqual([file.name for file in found], ["step-00000008.r0.h5"], process.stderr)
                verdict = self.replay("diagnose", found[0])
                said = (verdict["cause"], verdict["phase"], verdict["origin"], verdict["culprit"]["op"])
                self.assertEqual(said, ("RACE", "forward", "input", "aten::sub"), verdict["explanation"])
                # Where each read is looked at, both values are on record.
                self.assertEqual(verdict["reproduction"]["bit_exact"], level == "watch")

    def test_an_error_that_a_nan_brings_about(self):
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                process = self.observed(PROGRAMS / "raises.py", "nan", options=("--level", level), run_dir=f"nan-{level}")
                self.assertEqual(process.returncode, 1)
                self.assertIn("RuntimeError: all elements of input should be between 0 and 1 ended the program", process.stderr)
                self.check(f"nan-{level}", Case(3, "DOMAIN", op="aten::log", phase="forward"))

    def test_an_error_outside_of_every_step_is_told_with_what_was_bad(self):
        """As stable-baselines3's PPO does it: a sensor's NaN meets torch.distributions in a rollout without gradients."""
        process = self.observed(PROGRAMS / "sensor.py", "nan")
        self.assertEqual(process.returncode, 1)
        self.assertEqual(self.incidents("run"), [], process.stderr)
        (line,) = [line for line in process.stderr.splitlines() if "ended the program outside a recorded step" in line]
        self.assertIn("nanquest: ValueError: Expected parameter loc", line)
        self.assertRegex(line, r"NaN or Inf was in state \(1 of 4 elements\) and observed\['position'\] \(1 of 4 elements\) in collect, "
                               r".*sensor\.py:\d+; "
                               r"in loc .* in __init__, .*normal\.py:\d+")

    def test_an_index_that_an_error_refuses_is_told_with_its_sample(self):
        script = self.scratch / "labels.py"
        for what, line, words in (
            ("label", "loss = torch.nn.functional.cross_entropy(net(x)[:, 0], ids[:, 0])", "label 10 of sample 11 (at most"),
            ("gathered", "loss = -net(x)[:, 0].gather(1, ids[:, :1]).mean()", "index 10 of sample 11 (at most"),
            ("token", "loss = words(ids).mean() + net(x).mean()", "index 10 of sample 11 at position 2 (ids in <module>, "),
        ):
            with self.subTest(what):
                bad = "ids[11, 2] = 10" if what == "token" else "ids[11, 0] = 10"
                script.write_text("import torch\n"
                                  "net, words = torch.nn.Linear(8, 10), torch.nn.Embedding(10, 4)\n"
                                  "opt = torch.optim.SGD([*net.parameters(), *words.parameters()], 0.1)\n"
                                  "for step in range(8):\n"
                                  "    x, ids = torch.randn(16, 1, 8), torch.randint(0, 10, (16, 3))\n"
                                  f"    if step == 5: {bad}\n"
                                  f"    {line}\n"
                                  "    opt.zero_grad(); loss.backward(); opt.step()\n")
                process = self.observed(script, run_dir=what)
                self.assertEqual(process.returncode, 1)
                last = process.stderr.splitlines()[-1]
                self.assertIn(words.replace(" (at most", ""), last)
                self.assertIn("is outside of 10", last)

    def test_an_error_with_nothing_bad_in_its_frames_is_none_of_ours(self):
        process = self.observed(PROGRAMS / "sensor.py", "other")
        self.assertEqual(process.returncode, 1)
        self.assertNotIn("NaN or Inf was", process.stderr)
        self.assertNotIn("outside a recorded step", process.stderr)

    def test_another_error_is_none_of_ours(self):
        process = self.observed(PROGRAMS / "raises.py", "shape")
        self.assertEqual(process.returncode, 1)
        self.assertEqual(self.incidents("run"), [], process.stderr)


if __name__ == "__main__":
    main()
