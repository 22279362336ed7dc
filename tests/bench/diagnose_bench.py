#!/usr/bin/env python3
"""The time of a diagnosis relative to its step: "name ratio goal ok|short spread", one line each."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMON = """
    import resource, sys, time
    import torch
    from torch import nn
    torch.manual_seed(0)
"""
ROUNDS = int(os.environ.get("NANQUEST_BENCH_ROUNDS", 0))
LARGE = COMMON + """
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (16, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
            future = torch.full((x.shape[1],) * 2, float("-inf")).triu(1)
            mixed = (q @ k.transpose(-1, -2) / 8 + future).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))

    net = nn.Sequential(nn.Embedding(256, WIDTH), *(Block(WIDTH) for _ in range(8)), nn.Linear(WIDTH, 256))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for step in range(4):
        x = torch.randint(0, 256, (4, 64))
        began = time.perf_counter()
        p = net(x).softmax(-1)
        if step == 3:
            p = p * (p > 0.004)
        loss = -p.gather(-1, x.unsqueeze(-1)).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
LONG = COMMON + """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.out = nn.Parameter(torch.ones(8)), nn.Linear(8, 8)

        def forward(self, x):
            for _ in range(DEPTH):
                x = torch.tanh(x * self.w + 0.01)
            return self.out(x)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    for step in range(3):
        began = time.perf_counter()
        p = net(torch.rand(4, 8)).softmax(-1)
        if step == 2:
            p = p * (p < p.amax())
        loss = -p.log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def environment(attached):
    path = [str(ROOT / "probe" / "attach" / "python")] if attached else []
    path += filter(None, [os.environ.get("PYTHONPATH")])
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path), OMP_NUM_THREADS="1" if ROUNDS else "2",
                NANQUEST_ATTACH_LIBRARY=os.environ.get("NANQUEST_ATTACH_LIBRARY",
                                                       str(ROOT / "build" / "lib" / "libnanquest_attach.so")))


def finished(command, attached):
    done = subprocess.run(command, env=environment(attached), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"diagnose_bench: {command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def peak_and_seconds(command):
    """(bytes, seconds, standard output) of a command that may end with 1: something was found."""
    read, write = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        import os, resource, subprocess, sys, time
        began = time.perf_counter()
        code = subprocess.call(sys.argv[2:])
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        os.write(int(sys.argv[1]), f"{used} {time.perf_counter() - began} {code}".encode())
        """), str(write), *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, pass_fds=[write])
    out = child.communicate()[0]
    used, seconds, code = os.read(read, 200).split()
    if int(code) != 1:
        raise SystemExit(f"diagnose_bench: nanquest-replay ended with {int(code)}")
    return float(used), float(seconds), out


def line(name, ratio, goal, spread):
    print(f"{name} {ratio:.2f} {goal:g} {'ok' if ratio <= goal else 'short'} {spread}", flush=True)


def measure(name, program):
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "program.py"
        sizes = {"WIDTH": 64, "DEPTH": 170} if ROUNDS else {"WIDTH": 1024, "DEPTH": 17_000}
        file.write_text("".join(f"{key} = {size}\n" for key, size in sizes.items()) + textwrap.dedent(program))
        alone = [[float(x) for x in found] for found in re.findall(r"step (\S+) (\S+)", finished([sys.executable, file], False))]
        finished([sys.executable, "-m", "nanquest", "run", "--level", "trace", "--run-dir", f"{scratch}/run", sys.executable, file], True)
        incident = next((pathlib.Path(scratch) / "run" / "incidents").glob("*.h5"))
        programs = pathlib.Path(os.environ.get("NANQUEST_BIN", ROOT / "build" / "bin"))
        used, seconds, out = peak_and_seconds([programs / "nanquest-replay", "-q", "--json", "--no-files", incident])
        verdict = json.loads(out)
        cause = (verdict.get("likely") or verdict)["cause"]
        if (cause, verdict["culprit"]["op"]) != ("LOG_ZERO", "aten::log"):
            raise SystemExit(f"diagnose_bench: {name} is said to be {cause} at {verdict['culprit']['op']}")
        steps = [step[0] for step in alone]
        step = statistics.median(steps)
        spread = f"{seconds / max(steps):.1f}..{seconds / min(steps):.1f}"
        if name == "large":
            line("diagnosis of 100 million parameters, time", seconds / step, 20, spread)
            line("diagnosis of 100 million parameters, memory", used / max(s[1] for s in alone), 3, "-")
        else:
            line("diagnosis of 100 000 ops, minutes", seconds / 60, 1, f"{seconds / step:.1f} steps")


def main():
    for name in sys.argv[1:] or ("large", "long"):
        measure(name, {"large": LARGE, "long": LONG}[name])


if __name__ == "__main__":
    main()
