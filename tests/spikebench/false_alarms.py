"""Spikes that --on-spike record sees in healthy programs (healthy.py): false_alarms.py [--steps N] [--seeds N] [KIND …].

Prints for each program how many, and how many in 5,000 steps over all. Ends with 1 if that is more than one.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from healthy import KINDS

HERE = pathlib.Path(__file__).resolve().parent


def incidents(kind, steps, seed):
    environment = dict(os.environ, PYTHONPATH=str(HERE.parents[1] / "probe" / "attach" / "python"))
    with tempfile.TemporaryDirectory(prefix="nanquest-healthy-") as folder:
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", folder, "--on-spike", "record", "--", sys.executable, HERE / "healthy.py"]
        process = subprocess.run([*map(str, command), kind, str(steps), str(seed)], capture_output=True, text=True, env=environment)
        if process.returncode:
            raise SystemExit(f"{kind} ended with {process.returncode}: {process.stderr}")
        manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
        return manifest["incidents"], process.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    arguments = parser.parse_args()
    alarms = steps = 0
    for kind in arguments.kinds or KINDS:
        for seed in range(arguments.seeds):
            rows, _ = incidents(kind, arguments.steps, seed)
            alarms, steps = alarms + len(rows), steps + arguments.steps
            print(f"| {kind} | {seed} | {arguments.steps} | {len(rows)} |", *(row["summary"] for row in rows), flush=True)
    print(f"{alarms} in {steps} steps: {5000 * alarms / steps:.2f} in 5,000")
    return alarms * 5000 > steps


if __name__ == "__main__":
    sys.exit(main())
