#!/usr/bin/env python3
"""What the attached probe costs a training: "name ratio goal ok|short spread", one line for each model and level.

usage: attach_bench.py [--returning] [gpt2|gpt2-compiled|gpt2-fsdp2|resnet50|tiny|mlp|episodes ...]   (default: all; NANQUEST_BENCH_DEVICE=cuda: on a GPU)

"default" is what people get who set nothing: level trace with its watched steps, which are spaced so that they take 1 % of the time, at most
one in fifty. "trace" is the same without them, "guard" and "watch" are levels as they are. Where fifty steps would take minutes, the default's
process watches one step in fewer, and what one watched step adds to the trace is spread over fifty, or over so many that it is 1 %.

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
# model: (steps a block, rounds a launch, launches, {level: goal}; None: no goal, given to compare with). Levels of large models stand
# ready in two groups, as four processes are what 24 GiB hold.
LARGE = ({"default": 1.035, "trace": 1.03, "guard": 1.01}, {"watch": 1.25})
SMALL = ({"default": None, "trace": 1.35, "guard": None, "empty": None},)
MODELS = {"gpt2": (2, 4, 3, LARGE), "gpt2-compiled": (2, 4, 2, LARGE[:1]), "gpt2-fsdp2": (2, 4, 2, ({"trace": 1.04},)),
          "resnet50": (4, 4, 3, LARGE), "tiny": (50, 9, 3, SMALL), "mlp": (100, 9, 3, SMALL),
          "episodes": (50, 3, 3, SMALL)}
EVERY, SHARE = 50, 0.01   # by default at most one step in fifty is watched, and these take at most so much of the time (--watch-percent)
PROCESSES = {"gpt2-fsdp2": 2}   # 1 for all others
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
ROUNDS = int(os.environ.get("NANQUEST_BENCH_ROUNDS", 0))  # 1: a test that everything still runs, not how fast: one round, one launch
if ROUNDS:
    MODELS = {model: (steps, ROUNDS, 1, goals) for model, (steps, _, _, goals) in MODELS.items()}
    KEEPING = {}


class Worker:
    """One training, of one process or several."""

    def __init__(self, model, level, scratch, variables, *policy):
        command = [sys.executable, str(HERE / "attach_worker.py"), model]
        if level:
            command += [level, os.path.join(scratch, "-".join((model, level, *policy))), *policy]
        path = filter(None, [str(ROOT / "probe" / "attach" / "python"), os.environ.get("PYTHONPATH")])
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), **variables)
        environment.setdefault("NANQUEST_ATTACH_LIBRARY", str(ROOT / "build" / "lib" / "libnanquest_attach.so"))
        self.took = self.inside = self.processor = 0.0   # seconds of the last block: all, inside the probe's own functions, of the processor
        count = PROCESSES.get(model, 1)
        if count > 1:
            environment.update(WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        self.processes = [subprocess.Popen(command, env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)) if count > 1 else environment,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(count)]

    def wait_until_ready(self):
        if any(process.stdout.readline() != "ready\n" for process in self.processes):
            raise SystemExit("attach_bench: a training did not start; its own lines above say why")

    def ask(self, what):
        """What each process answers to that line."""
        for process in self.processes:
            print(what, file=process.stdin, flush=True)
        return [process.stdout.readline() for process in self.processes]

    def seconds(self, steps):
        self.took, self.inside, self.processor = max(tuple(map(float, answer.split())) for answer in self.ask(steps))
        return self.took

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

    needed = {"gpt2": "transformers", "resnet50": "torchvision"}.get(model.split("-")[0])
    return needed if needed and importlib.util.find_spec(needed) is None else None


def report(name, values, goal, more=""):
    value = statistics.median(values)
    aim = f"goal <= {goal:<8.4g} {'ok' if value <= goal else 'short':<5}" if goal else f"{'no goal':<22}"
    print(f"{name:<40} {value:8.4f}  {aim} spread {min(values):.4f}..{max(values):.4f}{more}", flush=True)


def take_turns(workers, turn, steps):
    """{name: seconds per step} of a block of `steps` of each, or of steps[name] if it is a table. Each block finds the caches as the one
    before left them, so the order rotates too."""
    order = list(workers)[turn % len(workers):] + list(workers)[:turn % len(workers)]
    blocks = steps if isinstance(steps, dict) else dict.fromkeys(workers, steps)
    return {name: workers[name].seconds(blocks[name]) / blocks[name] for name in order}


def ratio_of(level, times, every=EVERY):
    """Of a level to the program alone (None), the default's as with watched steps spaced as without a setting where it had one in `every`."""
    seconds = times[level]
    if level == "default" and every < EVERY:
        trace = times["trace"]
        seconds = trace + min((seconds - trace) * every / EVERY, SHARE * trace)
    return seconds / times[None]


def measure(model, scratch, variables):
    steps, rounds, launches, groups = MODELS[model]
    if os.environ.get("NANQUEST_BENCH_DEVICE", "cpu") != "cpu":  # steps are short there
        steps, launches = EVERY, 1
    every = min(steps, EVERY)
    if every < EVERY:
        variables = dict(variables, NANQUEST_BENCH_WATCH_EVERY=str(every))
    goals = {level: goal for group in groups for level, goal in group.items()}
    ratios, shares, plain_times = {level: [] for level in goals}, [], []
    fastest = dict.fromkeys((None, *goals), float("inf"))
    for launch in range(launches):
        for group in groups:
            workers = {level: Worker(model, level, os.path.join(scratch, str(launch)), variables) for level in (None, *group)}
            for worker in workers.values():
                worker.wait_until_ready()
            for turn in range(rounds):
                times = take_turns(workers, turn, steps)
                plain_times.append(times[None])
                fastest.update({level: min(fastest[level], times[level]) for level in workers})
                for level in group:
                    ratios[level].append(ratio_of(level, times, every))
                if "guard" in group:
                    shares.append(workers["guard"].inside / workers["guard"].took)
            for worker in workers.values():
                worker.end()
    for level, goal in goals.items():
        report(f"attach_{model}_{level}", ratios[level], goal, f"  fastest {ratio_of(level, fastest, every):.4f}")
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
