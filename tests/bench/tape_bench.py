#!/usr/bin/env python3
"""What a tape costs a training beyond level trace: "name ratio goal ok|short spread".

usage: tape_bench.py [gpt2|tiny|mlp ...]   (default: gpt2 tiny)

The same training at level trace without and with a tape, in turns as in attach_bench.py. A block has as many steps as the tape
keeps, so that each takes a new anchor (a copy of weights and moments) once, as a tape of so many steps does in the long run; gpt2,
whose steps take seconds, has one of 8, which pays for eight times as many anchors as the usual 64. "tape_MODEL" is the ratio of a block
with to the one without of the same round.
"""
import os
import statistics
import sys
import tempfile

from attach_bench import KEEPING, ROUNDS, Worker, missing, report, take_turns

# model: (steps of a block and of the tape, rounds a launch, launches, goal)
MODELS = {"gpt2": (8, 2, 3, 1.02), "tiny": (64, 6, 3, None), "mlp": (64, 12, 3, None)}


def measure(model, scratch):
    steps, rounds, launches, goal = MODELS[model]
    rounds, launches = (ROUNDS, 1) if ROUNDS else (rounds, launches)
    ratios, alone, fastest = [], [], {"trace": float("inf"), "tape": float("inf")}
    for launch in range(launches):
        folder = os.path.join(scratch, str(launch))
        workers = {"trace": Worker(model, "trace", folder, KEEPING, "continue", "0"),
                   "tape": Worker(model, "trace", folder, KEEPING, "continue", str(steps))}
        for worker in workers.values():
            worker.wait_until_ready()
        for worker in workers.values():
            worker.seconds(2 * steps)   # until anchors take turns, and their memory is there
        for turn in range(rounds):
            times = take_turns(workers, turn, steps)
            fastest = {kind: min(fastest[kind], times[kind]) for kind in workers}
            ratios.append(times["tape"] / times["trace"])
            alone.append(times["trace"])
        for worker in workers.values():
            worker.end()
    report(f"tape_{model}", ratios, goal, f"  fastest {fastest['tape'] / fastest['trace']:.4f}")
    print(f"tape_bench: {model}: {statistics.median(alone) * 1e3:.3f} ms a step at level trace, a tape of {steps} steps", file=sys.stderr)


def main():
    for model in sys.argv[1:] or ("gpt2", "tiny"):
        if missing(model):
            print(f"tape_bench: {model}: not measured, because {missing(model)} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, scratch)


if __name__ == "__main__":
    main()
