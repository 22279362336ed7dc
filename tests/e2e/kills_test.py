"""kill -9 at any moment of a run that saves at every step, keeps a tape and has an incident: nothing is lost.

NANQUEST_KILLS is the number of kills (8; at night 1000). At any moment, each file with its final name is complete, and the
continued run ends with the bytes and losses of the run without kills. Moments are drawn anew each time (NANQUEST_KILLS_SEED
repeats those of a failed run).
"""

import json
import os
import random
import shutil
import subprocess
import time
import unittest

import common

KILLS = int(os.environ.get("NANQUEST_KILLS", "8"))
SEED = int(os.environ.get("NANQUEST_KILLS_SEED", str(time.time_ns() % 1_000_000)))
# A small story: the rate is too high for fp16.
SETTINGS = """--steps 90 --depth 1 --width 32 --heads 2 --context 32 --activation relu2 --no-tied-head --init-std 0.1 --batch-size 2
  --amp-dtype fp16 --lr 0.4 --warmup-ratio 0.2 --beta2 0.95 --init-scale 1024 --lr-backoff 0.1 --eval-every 0 --eval-windows 0
  --threads 1 --save-every 1 --level trace --tape 4""".split()


class Kills(common.ProgramTest):
    def setUp(self):
        super().setUp()
        (self.scratch / "a.txt").write_text("".join(f"line {n} of a text that is {n * n % 97} long\n" for n in range(600)))
        self.run_dir = self.scratch / "run"
        self.seen = {}

    def command(self, run_dir, *more):
        return [str(common.BIN / "nanquest-trainer"), "--data", str(self.scratch / "a.txt"), "--run-dir", str(run_dir), *SETTINGS, *more]

    def result(self, run_dir):
        """The weights at the end, and step and loss of every line."""
        lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
        return ((run_dir / "checkpoints" / "final.safetensors").read_bytes(),
                [(line["step"], line["loss"]) for line in lines if "loss" in line])

    def incidents(self, run_dir):
        return sorted((run_dir / "incidents").glob("*.r0.h5"))

    def assert_whole(self):
        """Files of incidents that are new or changed since the last check can be read."""
        for path in self.incidents(self.run_dir):
            stamp = path.stat().st_mtime_ns, path.stat().st_size
            if self.seen.get(path) == stamp:
                continue
            self.seen[path] = stamp
            self.assert_exit(self.run_program("replay", "info", path), common.OK)

    def killed_after(self, seconds):
        """True if the run was killed; otherwise it ended normally."""
        states = list((self.run_dir / "checkpoints").glob("state-*.safetensors")) if self.run_dir.exists() else []
        if not states and self.run_dir.exists():
            shutil.rmtree(self.run_dir)  # it was killed before its first checkpoint
        with open(self.scratch / "said.txt", "w+", encoding="utf-8") as said:
            process = subprocess.Popen(self.command(self.run_dir, *(["--resume"] if states else [])), stdout=said, stderr=said)
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return True
            said.seek(0)
            self.assertIn(process.returncode, (common.OK, common.FINDING), said.read())
            return False

    def test_nothing_is_lost(self):
        whole = self.scratch / "whole"
        began = time.monotonic()
        process = subprocess.run(self.command(whole), capture_output=True, text=True, check=False)
        longest = time.monotonic() - began
        self.assert_exit(process, common.FINDING)
        self.assertTrue(self.incidents(whole), "there is no incident to be killed in")
        expected = self.result(whole)
        draw = random.Random(SEED)
        kills = lives = 0
        while kills < KILLS:
            self.seen.clear()
            shutil.rmtree(self.run_dir, ignore_errors=True)
            # Every run must end: one kill in eight is late enough for any run to finish.
            while self.killed_after(draw.uniform(0, longest) if draw.random() > 0.125 else 10 * longest + 10):
                kills += 1
                with self.subTest(kill=kills, seed=SEED):
                    self.assert_whole()
            lives += 1
            with self.subTest(life=lives, seed=SEED):
                self.assert_whole()
                weights, losses = self.result(self.run_dir)
                self.assertTrue(weights == expected[0], "the weights at the end are others")
                self.assertEqual(losses, expected[1])
                self.assertEqual([path.name for path in self.incidents(self.run_dir)], [path.name for path in self.incidents(whole)])
                self.assertFalse([path for path in self.run_dir.rglob("*.part*")], "something half-written stays")
                rewound = self.run_program("replay", "rewind", self.incidents(self.run_dir)[0], "--only-check", "--json")
                self.assertIn(rewound.returncode, (common.OK, common.BAD_FILE), rewound.stderr)
        print(f"{kills} kills in {lives} runs, each ended as if there had been none")


if __name__ == "__main__":
    unittest.main()
