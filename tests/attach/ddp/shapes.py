"""A program whose model is spread over two processes in ways of its own.

usage: shapes.py offload|sequence|context|gpipe|1f1b|interleaved batch|weight|op|healthy SAVE_AS      the fault comes in step 5, on rank 1

offload: fully_shard with CPUOffloadPolicy. sequence: tensor parallel, and what lies between is split along the sequence.
context: attention over a sequence that is split (not in a ring: on processors PyTorch has only the plain kernel for it, which all
ranks' keys are gathered for). gpipe, 1f1b: a pipeline of two stages, interleaved: of four, two on each rank;
the third of four micro-batches is the bad one, of a bad batch on rank 0, which alone is given one.
weight: a NaN in down.weight of the last block of the rank. op: the logarithm of zero in that block's spot.
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import ways

PIPELINES = ("gpipe", "1f1b", "interleaved")


class Spot(nn.Module):
    bad_at, calls = None, 0  # the call that takes the logarithm of zero

    def forward(self, x):
        if self.bad_at == self.calls:
            x = x + torch.log(x.detach() * 0)
        self.calls += 1
        return x


class Block(ways.Block):
    def __init__(self):
        super().__init__(32)
        self.spot = Spot()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.spot, self.down = nn.Linear(32, 96), Spot(), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 16)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.down(self.spot(y.transpose(1, 2).flatten(-2)))


way, fault, save_as = sys.argv[1:]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("shard",))
blocks = [Attention(), Attention()] if way == "context" else [Block() for _ in range(4 if way == "interleaved" else 2)]
model = nn.Sequential(*blocks, nn.Linear(32, 8))
schedule, around = None, contextlib.nullcontext
if way == "offload":
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    for part in model:
        fully_shard(part, mesh=mesh, offload_policy=CPUOffloadPolicy(pin_memory=False))
    fully_shard(model, mesh=mesh, offload_policy=CPUOffloadPolicy(pin_memory=False))
elif way == "sequence":
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    for part in blocks:
        parallelize_module(part, mesh, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)),
                                        "down": RowwiseParallel(output_layouts=Shard(1))})
    parallelize_module(model[-1], mesh, ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()))
elif way in PIPELINES:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
    per_rank = 2 if way == "interleaved" else 1
    stages = [nn.Sequential(block) for block in blocks]
    stages[-1].append(model[-1])
    mine = range(rank, len(blocks), size)
    blocks = [blocks[i] for i in mine]
    model = nn.ModuleList(stages[i] for i in mine)
    stages = [PipelineStage(part, i, size * per_rank, torch.device("cpu")) for part, i in zip(model, mine)]
    kind = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}[way]
    schedule = kind(stages if way == "interleaved" else stages[0], 4, loss_fn=nn.MSELoss())
elif way == "context":
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel

    @contextlib.contextmanager
    def around(*tensors):
        with sdpa_kernel(SDPBackend.MATH), context_parallel(mesh, buffers=list(tensors), buffer_seq_dims=[1] * len(tensors)):
            yield
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def local(tensor):
    return getattr(tensor, "_local_tensor", tensor).detach()


# Ranks that share a model's parts are given the same batch, others their own.
torch.manual_seed(100 + rank if way == "offload" else 100)
bad_rank = 0 if way in PIPELINES and fault == "batch" else 1
shape = (16, 32) if way == "offload" or way in PIPELINES else (4, 8, 32)
for step in range(8):
    bad = step == 5 and rank == bad_rank
    x, target = torch.randn(*shape), torch.randn(*shape[:-1], 8)
    if fault == "batch" and bad:
        x[9 if way in PIPELINES else 3, 4] = float("nan")
    if fault == "weight" and bad:
        with torch.no_grad():
            local(blocks[-1].down.weight).view(-1)[7] = float("nan")
    blocks[-1].spot.calls, blocks[-1].spot.bad_at = 0, (2 if schedule else 0) if fault == "op" and bad else None
    optimizer.zero_grad()
    if schedule:
        first, last = rank == 0, rank == size - 1
        schedule.step(*[x] * first, **{"target": target} if last else {})
    elif way == "context":
        with around(x, target):
            (model(x) - target).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    else:
        own = x[:, rank * 4: rank * 4 + 4] if way == "sequence" else x
        (model(own) - target).square().mean().backward()
    optimizer.step()
torch.save({name: local(p).clone() for name, p in model.named_parameters()}, f"{save_as}.{rank}")
model = schedule = stages = None  # they hold the process group: its threads would outlive its end and meet the interpreter's
dist.destroy_process_group()
