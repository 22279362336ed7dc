"""nanquest-trainer on the ranks of torchrun (`nanquest train`), by the process group that Python makes: the losses of one process,
an incident on one rank, a rank that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

TEXT = "the loss of a run grows and then it falls again\n" * 100
TINY = ["--depth", "1", "--width", "16", "--heads", "2", "--context", "16", "--batch-size", "8", "--threads", "1", "--lr", "0.01"]


class Torchrun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "a.txt"), "w", encoding="utf-8") as file:
            file.write(TEXT)

    def _command(self, ranks: int, run: str, *more: str) -> list:
        command = [sys.executable, "-m"]
        if ranks > 1:
            command += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
        return [*command, "nanquest", "train", "--data", os.path.join(self.folder, "a.txt"), "--run-dir",
                os.path.join(self.folder, run), *TINY, *more]

    def _train(self, ranks: int, run: str, *more: str) -> subprocess.CompletedProcess:
        return subprocess.run(self._command(ranks, run, *more), capture_output=True, text=True, timeout=120, check=False)

    def _losses(self, run: str) -> list:
        with open(os.path.join(self.folder, run, "metrics.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line)["loss"] for line in lines]

    def test_gives_the_losses_of_one_process(self):
        alone = self._train(1, "alone", "--steps", "10")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        both = self._train(2, "both", "--steps", "10", "--inject", "nan-loss@4:r1", "--policy", "retry_fp32", "--amp-dtype", "fp32")
        self.assertEqual(both.returncode, 1, both.stderr)
        losses, expected = self._losses("both"), self._losses("alone")
        self.assertEqual(len(losses), 10)
        for step in range(4):
            self.assertAlmostEqual(losses[step], expected[step], delta=1e-5 * expected[step])
        self.assertIn("rank 1's loss was NaN before the ranks' parts were added up", both.stderr)
        files = sorted(name for name in os.listdir(os.path.join(self.folder, "both", "incidents")) if name.endswith(".h5"))
        self.assertEqual(files, ["step-00000004.r0.h5", "step-00000004.r1.h5"])

    def test_ends_where_a_rank_dies(self):
        process = subprocess.Popen(self._command(2, "run", "--steps", "100000000", "--eval-every", "0"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        seen = []
        while not any(line.startswith("step 0/") for line in seen):
            seen.append(process.stderr.readline())
            self.assertTrue(seen[-1], "".join(seen))
        os.kill(self._rank_1(process.pid), signal.SIGKILL)
        _, rest = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        ours = [line for line in rest.splitlines() if line.startswith("nanquest-trainer: ")]
        self.assertEqual(len(ours), 1, rest)
        self.assertIn("the other ranks can't be reached", ours[0])
        self.assertTrue(any(line.startswith("saved: ") for line in rest.splitlines()), rest)

    def _rank_1(self, launcher: int) -> int:
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{name}/environ", "rb") as file:
                    environment = file.read().split(b"\0")
            except OSError:
                continue
            if parent == launcher and b"RANK=1" in environment:
                return int(name)
        self.fail("there is no rank 1")

    def test_refuses_in_one_line(self):
        ran = self._train(2, "run", "--steps", "10", "--batch-size", "5")
        ours = [line for line in ran.stderr.splitlines() if line.startswith("nanquest-trainer: ")]
        self.assertEqual(len(ours), 1, ran.stderr)
        self.assertIn("batch-size 5 can't be split over 2 ranks", ours[0])
        self.assertNotEqual(ran.returncode, 0)


if __name__ == "__main__":
    unittest.main()
