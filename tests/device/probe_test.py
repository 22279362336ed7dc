"""The probe on the test device: it finds there what it finds on a CPU, waits for nothing, and changes no bit."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nqdev
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
BIN = Path(os.environ["NANQUEST_BIN"])
PACKAGE = HERE.parents[1] / "probe" / "attach" / "python"
STEPS, COUNTED_FROM, BAD = 6, 3, 3
SEEDS = int(os.environ.get("NANQUEST_DEVICE_SEEDS", "10"))  # orders in which streams run; nightly 1000


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))


def dropping():
    return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 2))


# name -> (model, optimizer, format of autocast)
KINDS = {
    "adamw": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2), None),
    "fused": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True), None),
    "dropout": (dropping, lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), None),
    "fp16": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2), torch.float16),
}


def train(kind, fault="", seed=1):
    """(weights on the CPU, counts of the device's events in the last steps). In step BAD something goes wrong: "batch"
    or "rate"."""
    make, optimizer, amp = KINDS[kind]
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    nqdev._module.manual_seed_all(0)
    model = make().to("nqdev")
    optimizer = optimizer(model.parameters())
    scaler = torch.amp.GradScaler("nqdev", init_scale=256.0, enabled=amp is not None)
    for step in range(STEPS):
        if step == COUNTED_FROM:
            nqdev.reset_counts()
        x = torch.randn(4, 8)
        if step == BAD and fault == "batch":
            x[1, 3] = float("nan")
        if step == BAD and fault == "rate":
            for group in optimizer.param_groups:
                group["lr"] = float("inf")
        optimizer.zero_grad()
        with torch.autocast("nqdev", amp, enabled=amp is not None):
            loss = model(x.to("nqdev")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    counts = nqdev.counts()
    return [p.detach().cpu() for p in model.parameters()], counts


def train_while_it_fails(kind):
    """[(failure, number of the call that fails, weights or the error's words)]: the program's outcome, each time anew."""
    outcomes = []
    for failure in nqdev.FAILURES:
        for after in range(0, 400, 19):
            nqdev.heal()
            nqdev.fail(failure, after)
            try:
                outcomes.append((failure, after, train(kind)[0]))
            except RuntimeError as error:
                outcomes.append((failure, after, str(error)))
    nqdev.heal()
    return outcomes


class ProbeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def observed(self, level, kind, fault="", seeds=1):
        """(run directory, [weights, counts] for each seed) of such trainings in a process of its own."""
        run, out = self.scratch / f"{level}-{kind}", self.scratch / "out.pt"
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), str(HERE)]))
        process = subprocess.run([sys.executable, str(Path(__file__).resolve()), "--train", kind, fault, str(seeds),
                                  level, str(run), str(out)], env=environment, cwd=self.scratch, capture_output=True,
                                 text=True, timeout=280 + SEEDS)
        self.assertEqual(process.returncode, 0, process.stderr)
        if fault != "failures":
            self.assertNotIn("the probe is off", process.stderr)
        return run, torch.load(out)

    def assert_same_bits(self, a, b):
        for x, y in zip(a, b, strict=True):
            self.assertTrue(torch.equal(x.view(torch.int32), y.view(torch.int32)), (x, y))

    def verdict(self, run):
        """Of the first incident, by a replay on the CPU."""
        files = sorted(run.glob("incidents/*.r0.h5"))
        self.assertTrue(files, [str(p) for p in run.rglob("*")])
        replay = subprocess.run([str(BIN / "nanquest-replay"), "-q", str(files[0])], capture_output=True, text=True,
                                timeout=280)
        self.assertEqual(replay.returncode, 1, replay.stdout + replay.stderr)
        verdict = json.loads(files[0].with_suffix(".json").read_text())
        self.assertEqual(verdict["step"], BAD)
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
        return verdict

    def test_a_bad_update_is_found_in_the_step_that_made_it(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, [(weights, _)] = self.observed(level, "dropout", "rate")
                self.assert_same_bits(weights, train("dropout", "rate")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_SETTING", verdict["explanation"])
                self.assertEqual(verdict["phase"], "optimizer")

    def test_a_bad_batch_is_found_and_its_step_comes_back_bit_for_bit_on_the_cpu(self):
        for kind, level in [(kind, "trace") for kind in KINDS] + [("fused", "watch"), ("dropout", "watch")]:
            with self.subTest(kind=kind, level=level):
                run, [(weights, _)] = self.observed(level, kind, "batch")
                self.assert_same_bits(weights, train(kind, "batch")[0])
                verdict = self.verdict(run)
                self.assertEqual(verdict["cause"], "BAD_DATA", verdict["explanation"])
                self.assertEqual(verdict["culprit"]["module"], "0")
                self.assertTrue(verdict["fix"]["verified"])

    def test_no_bit_changes_in_whatever_order_streams_run(self):
        for kind, level in [(kind, "trace") for kind in KINDS] + [("adamw", "guard"), ("dropout", "watch"), ("fp16", "watch")]:
            alone = train(kind)[0]
            run, all_weights = self.observed(level, kind, seeds=SEEDS)
            self.assertEqual(len(all_weights), SEEDS)
            self.assertEqual(list(run.glob("incidents/*")), [])
            for seed, (weights, _) in enumerate(all_weights, 1):
                with self.subTest(kind=kind, level=level, seed=seed):
                    self.assert_same_bits(weights, alone)

    def test_failures_are_the_programs_alone(self):
        words = {"out_of_memory": "out of memory", "launch": "earlier kernel failed", "lost": "lost"}
        alone = train("dropout")[0]
        for level in ("trace", "watch"):
            _, outcomes = self.observed(level, "dropout", "failures")
            told = dict.fromkeys(words, 0)
            for failure, after, outcome in outcomes:
                with self.subTest(level=level, failure=failure, after=after):
                    if isinstance(outcome, str):
                        self.assertIn(words[failure], outcome)
                        told[failure] += 1
                    else:
                        self.assert_same_bits(outcome, alone)
            for failure, times in told.items():
                self.assertGreater(times, 5, (level, failure))

    def test_a_healthy_step_is_waited_for_once(self):
        """… and a watched one twice: at the gate, and for what its ops made."""
        counted = STEPS - COUNTED_FROM
        alone = train("fused")[1]
        for level in ("guard", "trace", "watch"):
            with self.subTest(level):
                _, [(_, counts)] = self.observed(level, "fused")
                print(level, {what: (counts[what] - alone[what]) / counted for what in counts}, "more a step")
                waits = counts["synchronisations"] - alone["synchronisations"]
                self.assertLessEqual(waits, counted * (2 if level == "watch" else 1), (counts, alone))
                if level != "watch":
                    self.assertLessEqual(counts["host_reads"] - alone["host_reads"], counted, (counts, alone))


if __name__ == "__main__":
    if "--train" in sys.argv:
        kind, fault, seeds, level, run_dir, out = sys.argv[sys.argv.index("--train") + 1:]
        import nanquest
        # No step is watched at level trace, so that the standing trace records.
        if not nanquest.attach(run_dir, level, watch_first=0, watch_every=0, keep_percent=1000000):
            raise SystemExit("the probe did not attach")
        if fault == "failures":
            torch.save(train_while_it_fails(kind), out)
            sys.exit()
        torch.save([train(kind, fault, seed) for seed in range(1, int(seeds) + 1)], out)
    else:
        unittest.main()
