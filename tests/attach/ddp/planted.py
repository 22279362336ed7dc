"""One fault in one of several processes, in step 3 of 5.

usage: planted.py WAY FAULT RANK OPTIMIZER
WAY: ddp, accumulated (two batches a step, the first under no_sync), averaged (updates of one's own, then weights are averaged), fsdp2,
mixed (fsdp2 in bf16), hsdp (of four ranks), tensor, pipeline (a stage each, four micro-batches)
FAULT: log (of zero), exp (of a thousand), root (at zero: only its derivative is bad), weight (NaN in up.weight of the last block, or of
a pipeline stage), batch (NaN in a sample; of pipelines the first stage's, of tensor parallel ranks all of theirs, as they share it)
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh


class Spot(nn.Module):
    fault = None

    def forward(self, x):
        if self.fault == "log":
            return x + torch.log(x.detach() * 0)
        if self.fault == "exp":
            return x + torch.exp(x + 1000)
        if self.fault == "root":
            return x + torch.sqrt(x * 0)
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.spot, self.down = nn.LayerNorm(16), nn.Linear(16, 32), Spot(), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(self.spot(nn.functional.gelu(self.up(self.norm(x)))))


way, fault, at, kind = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
blocks = [Block(), Block()]
net = nn.Sequential(*blocks, nn.Linear(16, 4))
model, schedule = net, None
if way in ("ddp", "accumulated"):
    model = nn.parallel.DistributedDataParallel(net)
elif way in ("fsdp2", "mixed", "hsdp"):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")) if way == "hsdp" else init_device_mesh("cpu", (size,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if way == "mixed" else MixedPrecisionPolicy()
    for part in net:
        fully_shard(part, mesh=mesh, mp_policy=policy)
    fully_shard(net, mesh=mesh, mp_policy=policy)
elif way == "tensor":
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cpu", (size,))
    for part in blocks:
        parallelize_module(part, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
elif way == "pipeline":
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    model = nn.Sequential(blocks[0]) if rank == 0 else nn.Sequential(blocks[1], net[2])
    schedule = ScheduleGPipe(PipelineStage(model, rank, size, torch.device("cpu")), 4, loss_fn=nn.MSELoss())
block = blocks[rank] if way == "pipeline" else blocks[1]
kinds = {"adamw": lambda weights: torch.optim.AdamW(weights, lr=1e-3, foreach=way != "tensor"),
         "sgd": lambda weights: torch.optim.SGD(weights, lr=1e-2, momentum=0.9, foreach=way != "tensor")}
optimizer = kinds[kind](model.parameters())


def local(tensor):
    return getattr(tensor, "_local_tensor", tensor).detach()


def batch(bad):
    x, target = torch.randn(8, 16), torch.randn(8, 4)
    if bad:
        x[5, 2] = float("nan")
    return x, target


torch.manual_seed(100 if way in ("tensor", "pipeline") else 100 + rank)
for step in range(5):
    mine = step == 3 and rank == at
    bad_batch = fault == "batch" and (mine or step == 3 and way == "tensor")
    block.spot.fault = fault if mine else None
    if fault == "weight" and mine:
        local(block.up.weight).view(-1)[3] = float("nan")
    optimizer.zero_grad()
    if schedule:
        x, target = batch(bad_batch)
        schedule.step(x) if rank == 0 else schedule.step(target=target)
    else:
        for part in range(2 if way == "accumulated" else 1):
            x, target = batch(bad_batch and part == 0)
            with model.no_sync() if way == "accumulated" and part == 0 else contextlib.nullcontext():
                (model(x) - target).square().mean().backward()
    optimizer.step()
    if way == "averaged":
        with torch.no_grad():
            for parameter in model.parameters():
                dist.all_reduce(parameter)
                parameter /= size
model = schedule = None  # hold the process group: its threads would outlive its end and meet the interpreter's
dist.destroy_process_group()
