"""What the probe costs on a device, as one table: a line for each model and level.

usage: gpu_cost.py [--device cuda|nqdev|cpu] [--json FILE|-] [--levels …] [--policies continue,skip,fallback_fp32,stop] [--rounds N] [--limit SECONDS] [MODEL ...]

Processes with the same training, one without the probe and one at each level, take turns of a block of steps (tests/bench/attach_bench.py). "default" is
what people get who set nothing, its watched steps spaced by what they cost; "trace" is the same without them, "guard" and "watch" are levels
as they are. Columns: a step's time; its ratio to the step without the probe of the same round (median, lowest, highest); how often a
healthy step waits for the device, and launches and copies, more than without the probe; the host's microseconds that the probe adds to
a step and to each of its operations. These are given where a step lasts as long as the host needs for it (gpt2-host, tiny, mlp), by the
processor's time where the host computes what is launched itself (nqdev, cpu). On nqdev counts are exact, and times are nobody's.
The default is counted over a period on nqdev, and elsewhere only timed. --policies counts waits and launches of each; times are of "continue".

Exit code: 1 if a level waits or launches more than it may (LIMITS), or a training does not start, which is a line of the table; else 0.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
from attach_bench import EVERY, KEEPING, Worker, missing, ratio_of, take_turns  # noqa: E402

LEVELS = ("guard", "trace", "default", "watch")
# A healthy step may do so much more than without the probe. Of trace: the batch, a mask, two for what an update overwrites where it is kept.
LIMITS = {"guard": {"waits": 1, "launches and copies": 5}, "trace": {"waits": 1, "launches and copies": 10}, "watch": {"waits": 2}}
COUNTED, WATCHED_BLOCK = 5, 5   # steps that are counted; steps of a block at level watch on a GPU, where they are several times as long
HOST_BOUND = ("gpt2-host", "tiny", "mlp")
MODELS = {"cuda": ("gpt2", "resnet50", "gpt2-compiled", "gpt2-host"), "nqdev": ("mlp",), "cpu": ("tiny", "mlp")}


def start(model, cases, scratch):
    """({case: its process, ready}, {case: why not})"""
    if needed := missing(model):
        return {}, dict.fromkeys(cases, f"{needed} is not installed")
    workers = {case: Worker(model, case and case[0], scratch, KEEPING, *(case or ())[1:]) for case in cases}
    ready, failed = {}, {}
    for case, worker in workers.items():
        try:
            worker.wait_until_ready()
            ready[case] = worker
        except SystemExit:
            failed[case] = "the training did not start"
    return ready, failed


def counts_of(device, workers):
    """{case: {"waits", "launches", "copies"} a step more than without the probe}; all processes count at the same time."""
    steps = {case: EVERY if device == "nqdev" and case and case[0] == "default" else COUNTED for case in workers}
    asked = [case for case in workers if device == "nqdev" or not case or case[0] != "default"]
    for case in asked:
        print("count", steps[case], file=workers[case].processes[0].stdin, flush=True)
    seen = {case: {what: count / steps[case] for what, count in json.loads(workers[case].processes[0].stdout.readline()).items()} for case in asked}
    alone = seen.pop(None)
    return {case: {what: round(count - alone[what], 3) for what, count in own.items()} for case, own in seen.items()}


def times_of(device, model, workers, rounds, limit):
    """{level: {"ms", "ratio", "low", "high", "host_us"}}, and the program's own milliseconds; as many of the rounds as begin within the limit."""
    by_level = {case and case[0]: worker for case, worker in workers.items() if case is None or case[1] == "continue"}
    steps = {level: WATCHED_BLOCK if device == "cuda" and level == "watch" else EVERY for level in by_level}
    seconds, ratios, host, began = {level: [] for level in by_level}, {level: [] for level in by_level}, {level: [] for level in by_level}, time.monotonic()
    for turn in range(rounds):
        if turn and time.monotonic() - began > limit * turn / (turn + 1):
            break
        times = take_turns(by_level, turn, steps)
        for level, worker in by_level.items():
            seconds[level].append(times[level])
            ratios[level].append(ratio_of(level, times))
            host[level].append(times[level] if device == "cuda" else worker.processor / steps[level])
    middle = statistics.median
    found = {level: {"ms": 1e3 * middle(seconds[level]), "ratio": middle(ratios[level]), "low": min(ratios[level]), "high": max(ratios[level]),
                     **({"host_us": 1e6 * middle(a - b for a, b in zip(host[level], host[None]))} if model in HOST_BOUND else {})}
             for level in by_level if level}
    return found, 1e3 * middle(seconds[None])


def exceeded(level, row):
    """What a level does more often than it may."""
    seen = {"waits": row.get("waits", 0), "launches and copies": row.get("launches", 0) + row.get("copies", 0)}
    return [what for what, most in LIMITS.get(level, {}).items() if seen[what] > most]


def measure(device, model, levels, policies, rounds, limit):
    """{"ms", "operations", "levels": {level: {policy: row}}} of a model."""
    cases = [None] + [(level, policy) for policy in policies for level in levels]
    with tempfile.TemporaryDirectory(prefix="nanquest-cost-") as scratch:
        workers, failed = start(model, cases, scratch)
        rows = {level: {} for level in levels}
        for (level, policy), why in ((case, why) for case, why in failed.items() if case):
            rows[level][policy] = {"failed": why}
        if None not in workers:
            return {"levels": rows}
        operations = None if model.endswith("compiled") else int(workers[None].ask("operations")[0])
        times, alone = times_of(device, model, workers, rounds, limit)
        for (level, policy), row in counts_of(device, workers).items():
            rows[level][policy] = row
        for level, row in times.items():
            rows[level]["continue"] = {**rows[level].get("continue", {}), **row}
        for worker in workers.values():
            worker.end()
    for level, row in ((level, row) for level in levels for row in rows[level].values()):
        row["exceeds"] = exceeded(level, row)
        if "host_us" in row and operations:
            row["host_us_an_operation"] = row["host_us"] / operations
    return {"ms": alone, "operations": operations, "levels": rows}


def lines_of(model, found):
    """The table's lines of a model."""
    def number(row, name, form):
        return format(row[name], form) if name in row else "-"

    if "ms" in found:
        count = f", {found['operations']} operations" if found["operations"] else ""
        yield f"{model:14} {'off':8} {found['ms']:9.3f} ms{count}"
    for level, policies in found["levels"].items():
        for policy, row in policies.items():
            name = level if policy == "continue" else f"{level} {policy}"
            if "failed" in row:
                yield f"{model:14} {name:22} {row['failed']}"
                continue
            ratio = f"{row['ratio']:.4f} ({row['low']:.3f} to {row['high']:.3f})" if "ratio" in row else "-"
            yield (f"{model:14} {name:22} {number(row, 'ms', '9.3f'):>9} {ratio:26} {number(row, 'waits', '.1f'):>6} {number(row, 'launches', '.1f'):>8}"
                   f" {number(row, 'copies', '.1f'):>6} {number(row, 'host_us', '.0f'):>8} {number(row, 'host_us_an_operation', '.2f'):>7}"
                   f" {'SHORT: ' + ', '.join(row['exceeds']) if row['exceeds'] else ''}").rstrip()


def as_json(device, table):
    return json.dumps({"device": device, "every": EVERY, "models": table}, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--device", default="cuda", choices=MODELS)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--levels", default=",".join(LEVELS), help="fewer, where a device's memory does not hold a training for each")
    parser.add_argument("--policies", default="continue")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--limit", type=float, default=3600, help="seconds of turns for a model")
    options = parser.parse_args()
    os.environ.update(NANQUEST_BENCH_DEVICE=options.device, PYTHONPATH=os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    if options.device != "cuda":
        os.environ["OMP_NUM_THREADS"] = "1"   # others wait by computing, which would count as the processor's time
    out = sys.stderr if options.json == "-" else sys.stdout
    print(f"{'model':14} {'level':22} {'ms':>9} {'of a step without':26} {'waits':>6} {'launches':>8} {'copies':>6} {'host us':>8} {'an op':>7}", file=out, flush=True)
    table = {}
    for model in options.models or MODELS[options.device]:
        table[model] = measure(options.device, model, options.levels.split(","), options.policies.split(","), options.rounds, options.limit)
        for line in lines_of(model, table[model]):
            print(line, file=out, flush=True)
        if options.json and options.json != "-":   # after each model, so that results are kept if time runs out
            Path(options.json).write_text(as_json(options.device, table))
    if options.json == "-":
        print(as_json(options.device, table))
    rows = [row for found in table.values() for policies in found["levels"].values() for row in policies.values()]
    return int(any(row.get("exceeds") or "failed" in row for row in rows) or any("ms" not in found for found in table.values()))


if __name__ == "__main__":
    sys.exit(main())
