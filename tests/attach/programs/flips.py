"""Trains a small net on a CPU; in step STEP one bit of one result of tanh is turned over, as a faulty processor might: flips.py STEPS STEP.

tanh is given a kernel that calls its own kernel for results in place. The probe sees one operation, aten::tanh, with that result.
"""

import sys

import torch
from torch import nn

STEPS, WRONG = int(sys.argv[1]), int(sys.argv[2])
ELEMENT, BIT = 13, 20
step = 0


def tanh(x):
    result = torch.empty_like(x)
    torch.ops.aten.tanh.out(x, out=result)
    if step == WRONG:
        result.view(torch.int32).flatten()[ELEMENT] ^= 1 << BIT
    return result


kernels = torch.library.Library("aten", "IMPL")
kernels.impl("tanh", tanh, "CPU")

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(STEPS):
    x, y = torch.randn(16, 12), torch.randint(0, 4, (16,))
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
