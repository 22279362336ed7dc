"""Two processes that train together; in step 3 the loss of rank BAD is the logarithm of zero.

usage: train.py MODE BAD WEIGHTS      (MODE: ddp, bucket-view, no-sync, manual, gather; BAD -1: nobody;
ddp-amp, ddp-low: under autocast, weights in bf16; ddp-loss: the loss alone is bad, its gradients are not;
ddp-given-up: so it is, and the ranks agree to leave the step out; ddp-average: rank 0 keeps an average in bf16;
local: every rank makes updates of its own, after which weights are averaged; local-absent: in step 3 none does; local-state: a
weight of rank BAD is lost; local-short: rank 1 makes one update less; nobody averages in these two)
"""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

mode, bad, weights = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo")
if mode == "local-short" and "nanquest" in sys.modules:
    import nanquest.ranks.skip_vote
    nanquest.ranks.skip_vote.PATIENCE = 5.0
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(4)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 2))
if mode == "ddp-low":
    net.bfloat16()
local = mode.startswith("local")
parallel = mode.startswith("ddp") or mode in ("bucket-view", "no-sync")
model = DistributedDataParallel(net, gradient_as_bucket_view=mode == "bucket-view") if parallel else net
average = torch.optim.swa_utils.AveragedModel(net).bfloat16() if mode == "ddp-average" and rank == 0 else None
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(10 + rank)


class Head(nn.Module):
    def forward(self, y, broken):
        return y + (y * 0).sum().log() if broken else y


head = Head()


def loss_of(step):
    broken, alone = step == 3 and rank == bad and mode not in ("local-absent", "local-state"), mode in ("ddp-loss", "ddp-given-up")
    with torch.autocast("cpu", torch.bfloat16, enabled=mode == "ddp-amp"):
        y = head(model(torch.randn(6, 4, dtype=torch.bfloat16 if mode == "ddp-low" else None)), broken and not alone)
    if mode != "gather":
        return y.square().mean() + (float("nan") if broken and alone else 0)
    everybody = [torch.empty_like(y) for _ in range(size)]
    dist.all_gather(everybody, y.detach())
    everybody[rank] = y
    return (torch.cat(everybody) @ torch.cat(everybody).t()).mean()


for step in range(5):
    optimizer.zero_grad()
    if mode == "local-short" and rank == 1 and step == 4:
        continue
    if mode == "local-absent" and step == 3:
        torch.randn(6, 4)
        continue
    if mode == "no-sync":
        with model.no_sync():
            loss_of(0).backward()
    loss = loss_of(step)
    loss.backward()
    if mode == "ddp-given-up":
        finite = torch.isfinite(loss.detach()).float()
        dist.all_reduce(finite, dist.ReduceOp.MIN)
        if not finite:
            continue
    if not parallel and not local:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
    if mode == "local-state" and step == 3 and rank == bad:
        with torch.no_grad():
            net[0].weight[0, 0] = float("nan")
    optimizer.step()
    if mode in ("local", "local-absent"):
        with torch.no_grad():
            for parameter in model.parameters():
                dist.all_reduce(parameter)
                parameter /= size
if mode == "local-short":
    dist.barrier()
torch.save(net.state_dict(), f"{weights}.{rank}")
loss = model = None  # hold the process group: its threads would outlive its end and meet the interpreter's
dist.destroy_process_group()
