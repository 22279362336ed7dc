"""Processes that train together, one of which is lost. In step 3 the loss of rank 1 is the logarithm of zero.

usage: lost.py WAY WEIGHTS [MEGABYTES]      (of the weights, so that writing a file takes its time)
 ddp      nobody is lost by itself
 alone    each rank makes updates of its own and talks to nobody
 dies     rank 1 kills itself in step 3, between its backward and its update
 store    as alone; rank 0, whose process holds the store, ends after step 1. early: before its first update
 agent    as alone; rank 0 kills its launcher after step 1
 again    as ddp; what torchrun starts first ends with rank 1 in step 4. What it starts then notes what files it found
"""
import json
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

way, weights, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
if "nanquest" in sys.modules:
    import nanquest.ranks.skip_vote
    nanquest.ranks.skip_vote.PATIENCE = 5.0
together = way in ("ddp", "dies", "again")
torch.manual_seed(4)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
if megabytes:
    net.append(nn.Linear(2, megabytes << 16))
model = DistributedDataParallel(net) if together else net
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
torch.manual_seed(10 + rank)


def mark(name):
    pathlib.Path(f"{weights}.{name}").write_text(str(os.getpid()))


def is_gone(pid):
    """Whether a process of this machine has ended, reaped or not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


if way == "again" and attempt and rank == 0:
    import hashlib
    files = sorted(path for path in pathlib.Path("run").rglob("*") if path.is_file())
    mark("again")
    pathlib.Path(f"{weights}.found").write_text(json.dumps({str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}))
for step in range(7):
    if way in ("store", "early") and step == (2 if way == "store" else 0):
        if rank == 0:
            mark("store")
            dist.barrier()
            os._exit(0)
        dist.barrier()
        holder = int(pathlib.Path(f"{weights}.store").read_text())
        while not is_gone(holder):
            time.sleep(0.02)
    if way == "agent" and step == 2:
        agent = os.getppid()
        dist.barrier()
        if rank == 0:
            os.kill(agent, signal.SIGKILL)
        while os.getppid() == agent:
            time.sleep(0.02)
    optimizer.zero_grad()
    y = model(torch.randn(6, 4))
    if step == 3 and rank == 1:
        y = y + (y * 0).sum().log()
    loss = y.square().mean()
    loss.backward()
    if way == "dies" and step == 3 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "again" and step == 4 and rank == 1 and not attempt:
        sys.exit(3)
    optimizer.step()
mark(f"done-{rank}")
torch.save(net.state_dict(), f"{weights}.{rank}")
loss = model = None
if together:
    dist.destroy_process_group()
