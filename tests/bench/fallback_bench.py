#!/usr/bin/env python3
"""What --on-incident fallback_fp32 costs a training in which nothing happens, beyond level guard: "name ratio goal ok|short spread".

usage: fallback_bench.py [gpt2|resnet50|tiny|mlp ...]   (default: gpt2 resnet50 tiny)

The same training three times: alone, at level guard, and at level guard with the fallback ready. They take turns as in
attach_bench.py. "fallback_MODEL" is the ratio of a block with the fallback to the guard's of the same round; "…_inside" is by how
much more of a step passes inside the probe's own functions, which tells more where the ratio scatters by more than the goal.
"""
import os
import statistics
import sys
import tempfile

from attach_bench import KEEPING, MODELS, Worker, missing, report, take_turns

GOAL = 1.01
KINDS = {"alone": (None,), "guard": ("guard",), "fallback": ("guard", "fallback_fp32")}


def measure(model, scratch):
    steps, rounds, launches, _ = MODELS[model]
    ratios, more, alone = [], [], []
    fastest = dict.fromkeys(KINDS, float("inf"))
    for launch in range(launches):
        folder = os.path.join(scratch, str(launch))
        workers = {kind: Worker(model, level, folder, KEEPING, *policy) for kind, (level, *policy) in KINDS.items()}
        for worker in workers.values():
            worker.wait_until_ready()
        for turn in range(rounds):
            times = take_turns(workers, turn, steps)
            inside = {kind: worker.inside / worker.took for kind, worker in workers.items()}
            fastest = {kind: min(fastest[kind], times[kind]) for kind in workers}
            ratios.append(times["fallback"] / times["guard"])
            more.append(inside["fallback"] - inside["guard"])
            alone.append(times["alone"])
        for worker in workers.values():
            worker.end()
    # No real training has a step below a tenth of a second: its line is for comparison only.
    goal = GOAL if statistics.median(alone) >= 0.1 else None
    report(f"fallback_{model}", ratios, goal, f"  fastest {fastest['fallback'] / fastest['guard']:.4f}")
    report(f"fallback_{model}_inside", more, goal and goal - 1)
    print(f"fallback_bench: {model}: {statistics.median(alone) * 1e3:.3f} ms a step without the probe", file=sys.stderr)


def main():
    for model in sys.argv[1:] or ("gpt2", "resnet50", "tiny"):
        if missing(model):
            print(f"fallback_bench: {model}: not measured, because {missing(model)} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, scratch)


if __name__ == "__main__":
    main()
