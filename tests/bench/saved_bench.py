#!/usr/bin/env python3
"""What looking at a file costs while a program writes it: "name ratio goal ok|short spread".

usage: saved_bench.py [large|small ...]   (default: large)

A torch.save of 256 MiB of weights (small: 32 MiB) with the look, and the same one without, in turns in one process; "saved_MODEL" is
what the look adds, as a share of the write. Without a free processor the look takes its time from the write.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOAL = 0.02
ROUNDS = int(os.environ.get("NANQUEST_BENCH_ROUNDS", 0)) or 20
LAYERS = {"large": 64, "small": 8}  # of 4 MiB


def worker(model, scratch):
    import torch
    from torch import nn

    import nanquest

    torch.set_num_threads(1)
    own = torch.save
    if not nanquest.attach(run_dir=os.path.join(scratch, "run"), level="guard"):
        sys.exit(1)
    net = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(LAYERS[model])])
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    net(torch.randn(4, 1024)).square().mean().backward()
    optimizer.step()
    state, file = net.state_dict(), os.path.join(scratch, "weights.pt")

    def took(save):
        begin = time.perf_counter()
        save(state, file)
        return time.perf_counter() - begin

    for save in (own, torch.save):
        took(save)
    for i in range(ROUNDS):
        times = {save: took(save) for save in ((own, torch.save) if i % 2 else (torch.save, own))}
        print(times[own], times[torch.save], flush=True)


def measure(model, scratch):
    from attach_bench import KEEPING, report

    path = os.pathsep.join(filter(None, [str(ROOT / "probe" / "attach" / "python"), os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=path, **KEEPING)
    environment.setdefault("NANQUEST_ATTACH_LIBRARY", str(ROOT / "build" / "lib" / "libnanquest_attach.so"))
    done = subprocess.run([sys.executable, __file__, "--worker", model, scratch], env=environment, stdout=subprocess.PIPE, text=True)
    rows = [[*map(float, line.split())] for line in done.stdout.splitlines()]
    if done.returncode or not rows:
        raise SystemExit("saved_bench: the program did not come to its end; its own lines above say why")
    report(f"saved_{model}", [after / before - 1 for before, after in rows], GOAL)
    print(f"saved_bench: {model}: {statistics.median(before for before, _ in rows) * 1e3:.1f} ms without the look, "
          f"{statistics.median(after for _, after in rows) * 1e3:.1f} ms with it", file=sys.stderr)


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
        return
    for model in sys.argv[1:] or ["large"]:
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, scratch)


if __name__ == "__main__":
    main()
