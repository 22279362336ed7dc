#!/usr/bin/env python3
"""What comparing replicas costs a training under DistributedDataParallel: "name ratio goal ok|short spread".

usage: replicas_bench.py [gpt2|tiny ...]   (default: both)

Two ranks over gloo train weights of GPT-2's shapes (124 million, 498 MB each; of its operations only products, on 64 rows, so that a step is
as short as one with such weights can be), or a net of 5000 weights. "replicas_MODEL" is the share of a block of steps that rank 0 spent in it:
it compares as well, the other only hashes. Of gpt2 every update hashes as much as any other, 10 MB; tiny
has a turn in a block. Processor time of that thread is compared with the processor time of the block of its process, so that other work on the machine does not count.
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
GOAL, EVERY = 0.005, 50
ROUNDS = int(os.environ.get("NANQUEST_BENCH_ROUNDS", 0))
BLOCKS = {"gpt2": (5, 2), "tiny": (1 if ROUNDS else 40, EVERY)}  # so many, of so many steps


def worker(model, run_dir):
    import torch
    import torch.distributed as dist
    from torch import nn

    import nanquest
    from nanquest.ranks import replicas

    torch.set_num_threads(1)
    if not nanquest.attach(run_dir=run_dir, level="guard", compare_replicas=EVERY):
        sys.exit(1)
    dist.init_process_group("gloo")
    width, layers, words = (768, 12, 50257) if model == "gpt2" else (16, 2, 32)
    blocks = [part for _ in range(layers) for part in (nn.Linear(width, 3 * width), nn.Linear(3 * width, width), nn.LayerNorm(width),
                                                       nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.LayerNorm(width))]
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Embedding(words, width), *blocks, nn.Linear(width, 16)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    inside, own = [0.0], replicas.Replicas.before_update

    def timed(*args):
        begin = time.thread_time()
        try:
            return own(*args)
        finally:
            inside[0] += time.thread_time() - begin
    replicas.Replicas.before_update = timed

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            net(torch.randint(0, words, (64,))).square().mean().backward()
            optimizer.step()
    steps(3)
    blocks, length = BLOCKS[model]
    for _ in range(blocks):
        inside[0], begin, wall = 0.0, time.process_time(), time.perf_counter()
        steps(length)
        if dist.get_rank() == 0:
            print(inside[0], time.process_time() - begin, time.perf_counter() - wall, flush=True)
    dist.barrier()
    dist.destroy_process_group()


def measure(model, scratch):
    from attach_bench import KEEPING, free_port, report

    port = str(free_port())
    path = os.pathsep.join(filter(None, [str(ROOT / "probe" / "attach" / "python"), os.environ.get("PYTHONPATH")]))
    running = []
    for rank in range(2):
        environment = dict(os.environ, PYTHONPATH=path, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                           NANQUEST_RUN_ID="bench", **KEEPING)
        environment.setdefault("NANQUEST_ATTACH_LIBRARY", str(ROOT / "build" / "lib" / "libnanquest_attach.so"))
        running.append(subprocess.Popen([sys.executable, __file__, "--worker", model, os.path.join(scratch, "run")], env=environment,
                                        stdout=subprocess.PIPE, text=True))
    rows = [[*map(float, line.split())] for line in running[0].communicate()[0].splitlines()]
    if running[1].wait() or running[0].returncode or not rows:
        raise SystemExit("replicas_bench: a rank did not come to its end; its own lines above say why")
    report(f"replicas_{model}", [inside / whole for inside, whole, _ in rows], GOAL)
    print(f"replicas_bench: {model}: {statistics.median(wall for _, _, wall in rows) / BLOCKS[model][1] * 1e3:.3f} ms a step of two ranks, "
          f"{statistics.median(inside for inside, _, _ in rows) / BLOCKS[model][1] * 1e6:.1f} us of it compare", file=sys.stderr)


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
        return
    for model in sys.argv[1:] or BLOCKS:
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
            measure(model, scratch)


if __name__ == "__main__":
    main()
