#!/usr/bin/env python3
"""Thousands of healthy steps of ten architectures: not one alarm, and the weights of the same program without the probe.

  try_healthy.py                     # 1000 steps of each at both levels: 20 000
  try_healthy.py --steps 20 --few    # three of them, for the ordinary tests
  try_healthy.py --only 'gpt2/.*'

Steps that a loss scaler skips while it looks for its scale are healthy. Exit code: 0 if there was no alarm, no bad loss
and no other bit, else 1.
"""

import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "matrix")]

import run as matrix  # noqa: E402, of the matrix: programs within limits of time and memory

import attached  # noqa: E402

LEVELS = ("trace", "watch")
FEW = ("gpt2/adamw-foreach/fp16/plain", "resnet/sgd/fp32/plain", "lstm/adamw-single/fp32/clip")
ALL = FEW + (
    "bert/adamw-fused/fp16/eager-attention",
    "llama/adamw-fused/bf16/clip",
    "t5/adamw-single/bf16/plain",
    "unet/adamw-foreach/fp32/accumulate",
    "vit/adamw-foreach/bf16/plain",
    "mamba/adamw-foreach/fp32/clip",
    "gcn/sgd/fp32/plain",
)


def trained(spec, steps, level, folder):
    """(what the program printed, incidents and findings, what went wrong)."""
    command = [sys.executable, HERE / "healthy_program.py", spec, steps, level, folder / level]
    package = f"{attached.PACKAGE}:{matrix.environment()['PYTHONPATH']}"
    code, out, err = matrix.finished(command, folder, combinations_in_it=1 + steps // 100, PYTHONPATH=package,
                                     NANQUEST_ATTACH_LIBRARY=str(attached.LIBRARY))
    if code != 0 or "the probe is off" in err:
        return {}, [], f"ended with {code}: {matrix.last_line(err)}"
    manifest = folder / level / "manifest.json"
    findings = json.loads(manifest.read_text())["findings"] if manifest.exists() else []
    alarms = sorted(p.name for p in (folder / level).glob("incidents/*")) + [row["text"] for row in findings]
    return json.loads(out.splitlines()[-1]), alarms, ""


def judged(spec, steps):
    """What is wrong; "" if nothing is."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-healthy-"))
    try:
        alone, _, trouble = trained(spec, steps, "off", folder)
        wrong = [f"alone: {trouble}"] if trouble else []
        if alone and alone["bad_losses"]:
            wrong.append(f"alone: {alone['bad_losses']} losses are not finite: this program is not healthy")
        for level in LEVELS if not wrong else ():
            seen, alarms, trouble = trained(spec, steps, level, folder)
            if trouble or alarms:
                wrong.append(f"{level}: {trouble or 'alarm: ' + ', '.join(alarms)}")
            elif seen != alone:
                wrong.append(f"{level}: another result than without the probe: {seen}, not {alone}")
    finally:
        shutil.rmtree(folder)
    return "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, metavar="N", help="of each at each level (default %(default)s)")
    parser.add_argument("--few", action="store_true", help="three architectures only")
    parser.add_argument("--only", metavar="REGEX", default=".*", help="only those whose whole name matches")
    options = parser.parse_args()
    chosen = [spec for spec in (FEW if options.few else ALL) if re.fullmatch(options.only, spec)]
    failed = 0
    for spec in chosen:
        start = time.monotonic()
        wrong = judged(spec, options.steps)
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok':5} {spec:38} {time.monotonic() - start:6.1f} s  {wrong}", flush=True)
    made = (len(chosen) - failed) * options.steps * len(LEVELS)
    print(f"{made} healthy steps without an alarm, bit for bit those without the probe; {failed} of {len(chosen)} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
