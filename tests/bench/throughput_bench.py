#!/usr/bin/env python3
"""Tokens a second of the trainer at level guard over those of eager PyTorch: "name ratio goal ok|short spread".

usage: throughput_bench.py [--threads N] [4x128|gpt2 ...]   (default: both, one thread)

The same model (the trainer's GPT, and GPT-2's 124 M weights), the same batches' shape, clip and optimizer (AdamW, fused in both),
fp32. PyTorch computes attention by scaled_dot_product_attention; the trainer in its three ways: "fused" (its default),
"written" (--attention written, op by op for the snapshot's sake), and fused with --prefetch. All stand ready as processes and take turns, a block
of steps each, in an order that turns too; a ratio is that of a round, so that a machine whose speed drifts drifts for all. The last
number is the median ratio of the processor's time, which other work on the machine disturbs less.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from attach_bench import HERE, KEEPING, ROOT, ROUNDS, Worker, take_turns

# model: (steps a block, rounds, goals of the trainer's ways; None: given to compare with)
MODELS = {"4x128": (10, 15, {"fused": 1.0, "written": 1.0, "prefetch": None}),
          "gpt2": (1, 12, {"fused": 1.0, "written": 1.0})}
WORKER = pathlib.Path(os.environ.get("NANQUEST_BENCH_WORKERS", ROOT / "build" / "bin" / "bench-workers")) / "throughput_worker"


class Training(Worker):
    """One process, which answers a block with its seconds and the processor's."""

    def __init__(self, command):
        self.processes = [subprocess.Popen(list(map(str, command)), env=dict(os.environ, **KEEPING), stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, text=True)]

    def seconds(self, steps):
        took, self.processor = map(float, self.ask(steps)[0].split())
        return took


def measure(model, threads, scratch):
    steps, rounds, goals = MODELS[model]
    rounds = ROUNDS or rounds
    text = scratch / "text.txt"
    text.write_text("".join(f"line {i * i} of a text to train on\n" for i in range(20000)))
    workers = {"torch": Training([sys.executable, HERE / "throughput_worker.py", model, text, threads])}
    for way in goals:
        workers[way] = Training([WORKER, model, way, text, scratch / f"{model}-{way}", threads])
    for worker in workers.values():
        worker.wait_until_ready()
    ratios, worked = {way: [] for way in goals}, {way: [] for way in goals}
    torch_times = []
    for turn in range(rounds):
        times = take_turns(workers, turn, steps)
        torch_times.append(times["torch"])
        for way in goals:
            ratios[way].append(times["torch"] / times[way])
            worked[way].append(workers["torch"].processor / workers[way].processor)
    for way, goal in goals.items():
        value = statistics.median(ratios[way])
        aim = f"goal >= {goal:<8.4g} {'ok' if value >= goal else 'short':<5}" if goal else f"{'no goal':<22}"
        print(f"{f'trainer_{model}_{way}_vs_torch':<40} {value:8.4f}  {aim} spread {min(ratios[way]):.4f}..{max(ratios[way]):.4f}"
              f"  processor {statistics.median(worked[way]):.4f}", flush=True)
    print(f"throughput_bench: {model}: {statistics.median(torch_times) * 1e3:.1f} ms a step in PyTorch, {threads} threads", file=sys.stderr)
    for worker in workers.values():
        worker.end()


def main():
    arguments, threads = sys.argv[1:], 1
    if "--threads" in arguments:
        at = arguments.index("--threads")
        threads = int(arguments[at + 1])
        del arguments[at:at + 2]
    if not WORKER.exists():
        print(f"throughput_bench: not measured, because {WORKER} is not built", file=sys.stderr)
        return
    for model in arguments or MODELS:
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, threads, pathlib.Path(scratch))


if __name__ == "__main__":
    main()
