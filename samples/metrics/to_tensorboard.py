#!/usr/bin/env python3
"""A run's metrics.jsonl as TensorBoard events, written by TensorBoard's own package (pip install tensorboard).

    python samples/metrics/to_tensorboard.py runs/first              # writes runs/first/tensorboard
    tensorboard --logdir runs/first/tensorboard

Every number is a curve of its name over `step`; a missing value is no point of a curve. An incomplete line (the machine went down
while it was written) is left out and counted.
"""
import argparse
import json
import pathlib
import sys


def read_lines(path):
    """The objects of a file that have a step, and the number of lines that have none."""
    rows, odd = [], 0
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
                row["step"] = int(row["step"])
                rows.append(row)
            except (ValueError, KeyError, TypeError):
                odd += 1
    return rows, odd


def write_events(rows, folder):
    from tensorboard.summary import Writer

    writer = Writer(str(folder))
    for row in rows:
        for name, value in row.items():
            if name not in ("step", "time"):
                writer.add_scalar(name, value, row["step"], wall_time=row.get("time"))
    writer.close()


def main():
    parser = argparse.ArgumentParser(description="metrics.jsonl of a run as TensorBoard events")
    parser.add_argument("run", type=pathlib.Path, help="a run directory, or a metrics.jsonl")
    parser.add_argument("--out", type=pathlib.Path, help="where the events go (default: tensorboard/ in the run)")
    args = parser.parse_args()
    path = args.run / "metrics.jsonl" if args.run.is_dir() else args.run
    out = args.out or path.parent / "tensorboard"
    try:
        rows, odd = read_lines(path)
    except OSError as error:
        print(f"{path}: {error.strerror} (give a run directory of nanquest-trainer)", file=sys.stderr)
        return 3
    if not rows:
        print(f"{path}: no line with a step (is it a metrics.jsonl?)", file=sys.stderr)
        return 3
    if out.is_dir() and any(out.glob("events.out.tfevents.*")):
        print(f"{out}: there are events already, and two sets draw over each other (remove it, or give --out)",
              file=sys.stderr)
        return 2
    try:
        write_events(rows, out)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed (pip install tensorboard)", file=sys.stderr)
        return 2
    print(f"{out}: {len(rows)} steps" + (f", {odd} lines that are not whole left out" if odd else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
