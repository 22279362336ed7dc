"""The probe on the test device: what it can't see it says so, and the program does not notice."""

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


def train(bad_step=None, seed=1):
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2)).to("nqdev")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(5):
        x = torch.randn(4, 8)
        if step == bad_step:
            x[1, 3] = float("nan")
        loss = model(x.to("nqdev")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.detach().cpu() for p in model.parameters()]


class ProbeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def observed(self, level, bad_step):
        """The run directory of this file's training, and its weights."""
        run, out = self.scratch / level, self.scratch / f"{level}.pt"
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), str(HERE)]))
        process = subprocess.run(
            [sys.executable, "-m", "nanquest", "run", "--level", level, "--run-dir", str(run), "--record-steps", "2", "--",
             sys.executable, str(Path(__file__).resolve()), "--train", str(bad_step), str(out)],
            env=environment, cwd=self.scratch, capture_output=True, text=True, timeout=280)
        self.assertEqual(process.returncode, 0, process.stderr)
        return run, torch.load(out)

    def test_a_step_that_nobody_could_look_at_is_not_called_good(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                run, weights = self.observed(level, bad_step=3)
                for a, b in zip(weights, train(bad_step=3)):
                    self.assertTrue(torch.equal(a, b) or (a.isnan() == b.isnan()).all())
                files = sorted(run.glob("incidents/*.r0.h5")) + sorted(run.glob("recordings/*.r0.h5"))
                self.assertTrue(files, [str(p) for p in run.rglob("*")])
                for file in files:
                    replay = subprocess.run([str(BIN / "nanquest-replay"), "-q", str(file)], capture_output=True, text=True,
                                            timeout=280)
                    self.assertNotIn("in this step", replay.stdout)
                    self.assertEqual(replay.returncode, 1, replay.stdout + replay.stderr)
                    verdict = json.loads(file.with_suffix(".json").read_text())
                    if not verdict["found"]:
                        self.assertIn("NOT SEEN", replay.stdout)
                        self.assertGreaterEqual(verdict["unseen"]["ops"], 15)
                        self.assertGreater(verdict["unseen"]["gradients"], 0)


if __name__ == "__main__":
    if "--train" in sys.argv:
        at = sys.argv.index("--train")
        torch.save(train(int(sys.argv[at + 1])), sys.argv[at + 2])
    else:
        unittest.main()
