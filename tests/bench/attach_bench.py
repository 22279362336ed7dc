#!/usr/bin/env python3
"""What the attached probe costs a training: "name ratio goal ok|short spread", one line for each model and level.

usage: attach_bench.py [--returning] [gpt2|gpt2-compiled|gpt2-fsdp2|resnet50|tiny|mlp ...]   (default: all; NANQUEST_BENCH_DEVICE=cuda: on a GPU)

A process without the probe and one for each level stand ready with the same training; they take turns, a block of steps
each, round after round; then all begin anew, as where its memory happens to lie makes one process a hundredth or two faster
than another. A ratio is that of a round, so that a machine whose speed drifts drifts for both; the line shows their median,
lowest and highest, and the ratio of the fastest blocks, which other work on the machine disturbs least. "guard_inside" is
the share of a guarded step that passed inside the probe's own functions: it tells more than a ratio does where that
scatters by more than the goal. "empty" is no level: PyTorch's own observer that does nothing but get every op's inputs,
which is the least that a trace can cost. "gpt2-fsdp2" trains in two processes: a block took as long as the slower of them.

All of them run with a malloc that keeps what is freed (for the glibc that is two variables). Returning it to the system
makes the next step touch new pages, and what that costs varies from one moment to the next on a virtual machine: with it
(--returning) the ratios of a real model varied from 0.8 to 1.4 and more.
"""
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# model: (steps a block, rounds a launch, launches, {level: goal}; None: no goal, given to compare with)
MODELS = {"gpt2": (2, 4, 3, {"guard": 1.01, "trace": 1.03, "watch": 1.25}),
          "gpt2-compiled": (2, 4, 2, {"guard": 1.01, "trace": 1.04}),
          "gpt2-fsdp2": (2, 4, 2, {"trace": 1.04}),   # four processes are what 24 GiB hold
          "resnet50": (4, 4, 3, {"guard": 1.01, "trace": 1.03, "watch": 1.25}),
          "tiny": (50, 9, 3, {"guard": None, "trace": 1.35, "empty": None}),
          "mlp": (100, 9, 3, {"guard": None, "trace": 1.35, "empty": None})}
PROCESSES = {"gpt2-fsdp2": 2}   # 1 for all others
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


class Worker:
    """One training, of one process or several."""

    def __init__(self, model, level, scratch, variables, *policy):
        command = [sys.executable, str(HERE / "attach_worker.py"), model]
        if level:
            command += [level, os.path.join(scratch, "-".join((model, level, *policy))), *policy]
        path = filter(None, [str(ROOT / "probe" / "attach" / "python"), os.environ.get("PYTHONPATH")])
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), **variables)
        environment.setdefault("NANQUEST_ATTACH_LIBRARY", str(ROOT / "build" / "lib" / "libnanquest_attach.so"))
        self.inside = 0.0    # seconds of the last block that passed inside the probe's own functions
        count = PROCESSES.get(model, 1)
        if count > 1:
            environment.update(WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        self.processes = [subprocess.Popen(command, env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)) if count > 1 else environment,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(count)]

    def wait_until_ready(self):
        if any(process.stdout.readline() != "ready\n" for process in self.processes):
            raise SystemExit("attach_bench: a training did not start; its own lines above say why")

    def seconds(self, steps):
        for process in self.processes:
            print(steps, file=process.stdin, flush=True)
        took, self.inside = max(tuple(map(float, process.stdout.readline().split())) for process in self.processes)
        return took

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def missing(model):
    """The module that a model needs and this Python does not have."""
    import importlib.util

    needed = {"gpt2": "transformers", "gpt2-compiled": "transformers", "gpt2-fsdp2": "transformers", "resnet50": "torchvision"}.get(model)
    return needed if needed and importlib.util.find_spec(needed) is None else None


def report(name, values, goal, more=""):
    value = statistics.median(values)
    aim = f"goal <= {goal:<8.4g} {'ok' if value <= goal else 'short':<5}" if goal else f"{'no goal':<22}"
    print(f"{name:<40} {value:8.4f}  {aim} spread {min(values):.4f}..{max(values):.4f}{more}", flush=True)


def measure(model, scratch, variables):
    steps, rounds, launches, goals = MODELS[model]
    if os.environ.get("NANQUEST_BENCH_DEVICE", "cpu") != "cpu":  # steps are short there
        steps, launches = 10 * steps, 1
    ratios, shares, plain_times = {level: [] for level in goals}, [], []
    fastest = dict.fromkeys((None, *goals), float("inf"))
    for launch in range(launches):
        workers = {level: Worker(model, level, os.path.join(scratch, str(launch)), variables) for level in fastest}
        for worker in workers.values():
            worker.wait_until_ready()
        for turn in range(rounds):
            # Whoever comes after another's block finds the caches as that one left them: the order turns too.
            order = list(workers)[turn % len(workers):] + list(workers)[:turn % len(workers)]
            times = {level: workers[level].seconds(steps) for level in order}
            plain_times.append(times[None] / steps)
            fastest = {level: min(fastest[level], times[level]) for level in workers}
            for level in goals:
                ratios[level].append(times[level] / times[None])
            if "guard" in goals:
                shares.append(workers["guard"].inside / times["guard"])
        for worker in workers.values():
            worker.end()
    for level, goal in goals.items():
        report(f"attach_{model}_{level}", ratios[level], goal, f"  fastest {fastest[level] / fastest[None]:.4f}")
    if shares:
        report(f"attach_{model}_guard_inside", shares, goals["guard"] and goals["guard"] - 1)
    print(f"attach_bench: {model}: {statistics.median(plain_times) * 1e3:.3f} ms a step without the probe", file=sys.stderr)


def main():
    variables = {} if "--returning" in sys.argv[1:] else KEEPING
    for model in [a for a in sys.argv[1:] if a != "--returning"] or MODELS:
        if missing(model):
            print(f"attach_bench: {model}: not measured, because {missing(model)} is not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, scratch, variables)


if __name__ == "__main__":
    main()
