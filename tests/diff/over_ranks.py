"""One training step on one rank or on two: over_ranks.py WAY [PLANT]. The same weights, and the same batch, halved where ranks divide it.

WAY: one; ddp and sampled (DistributedDataParallel; each has half of the batch, or every other sample), fsdp2 (fully_shard), tensor
(parallelize_module) under torchrun. PLANT: no-all-reduce (tensor: a block's second layer leaves each rank its part of the sum),
loss-over-ranks (ddp, fsdp2: the mean of the ranks' means, although they have different numbers of tokens), scale (attention scale),
decay (of the optimizer), bf16 (fsdp2: what it computes in),
sums (ddp: gradients are added, not averaged), unsynced (ddp: no_sync), bias-twice (tensor: each rank adds the bias to its part of a sum),
frozen (the last bias is not trained)
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

WAY, PLANT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
VOCABULARY, WIDTH, LENGTH = 37, 16, 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) * (0.3 if PLANT == "scale" else WIDTH**-0.5)
        return self.out(torch.softmax(scores, -1) @ v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.attention, self.norm = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        y = self.down(torch.tanh(self.up(self.norm(x))))
        if PLANT == "bias-twice" and self is model[2]:
            y = y + getattr(self.down.bias, "_local_tensor", self.down.bias) * (ranks - 1)
        return x + y


def parallelize(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    for index in (1, 2):
        left = {"output_layouts": Partial()} if PLANT == "no-all-reduce" and index == 2 else {}
        parallelize_module(model[index], init_device_mesh("cpu", (dist.get_world_size(),)),
                           {"up": ColwiseParallel(), "down": RowwiseParallel(**left)})


rank, ranks, divides = 0, 1, WAY in ("ddp", "sampled", "fsdp2")
if WAY != "one":
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), Block(), Block(), nn.Linear(WIDTH, VOCABULARY))
if PLANT == "frozen":
    model[3].bias.requires_grad_(False)
if WAY in ("ddp", "sampled"):
    model = nn.parallel.DistributedDataParallel(model)
    if PLANT == "sums":
        model.register_comm_hook(None, lambda _, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0]))
elif WAY == "fsdp2":
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    formats = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if PLANT == "bf16" else MixedPrecisionPolicy()
    for part in (*model, model):
        fully_shard(part, mp_policy=formats)
elif WAY == "tensor":
    parallelize(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.02 if PLANT == "decay" else 0.01, foreach=False)
batches = torch.Generator().manual_seed(5)
for _ in range(2):
    tokens = torch.randint(0, VOCABULARY, (8, LENGTH + 1), generator=batches)
    targets = tokens[:, 1:].clone()
    for row in range(8):
        targets[row, 3 + row:] = -100
    inputs, everywhere = tokens[:, :-1].clone(), (targets >= 0).sum()
    if divides:
        own = slice(rank, None, ranks) if WAY == "sampled" else slice(8 * rank // ranks, 8 * (rank + 1) // ranks)
        inputs, targets = inputs[own].clone(), targets[own].clone()
    with model.no_sync() if PLANT == "unsynced" else contextlib.nullcontext():
        logits = model(inputs).flatten(0, 1)
    if PLANT == "loss-over-ranks" or not divides:
        loss = F.cross_entropy(logits, targets.flatten())
    else:
        loss = F.cross_entropy(logits, targets.flatten(), reduction="sum") * ranks / everywhere
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if WAY != "one":
    dist.destroy_process_group()
