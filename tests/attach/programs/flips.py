"""Trains a small net on a CPU; in step STEP one bit of one result of tanh is turned over, as a faulty processor might: flips.py STEPS STEP. Under torchrun
in rank 1 alone, of two that train with DistributedDataParallel.

tanh is given a kernel that calls its own kernel for results in place. The probe sees one operation, aten::tanh, with that result.
"""

import os
import sys

import torch
from torch import nn

STEPS, WRONG = int(sys.argv[1]), int(sys.argv[2])
ELEMENT, BIT = 13, 20
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
step = 0


def tanh(x):
    result = torch.empty_like(x)
    torch.ops.aten.tanh.out(x, out=result)
    if step == WRONG and RANK == RANKS - 1:
        result.view(torch.int32).flatten()[ELEMENT] ^= 1 << BIT
    return result


kernels = torch.library.Library("aten", "IMPL")
kernels.impl("tanh", tanh, "CPU")

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))
if RANKS > 1:
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(STEPS):
    x, y = torch.randn(16, 12), torch.randint(0, 4, (16,))
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
if RANKS > 1:
    torch.distributed.destroy_process_group()
