"""Activations are kept in fp16 between the passes by hooks of saved tensors, as activation compression does it; batch 3 holds a NaN.

usage: offloaded.py OUT.pt
"""
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(4, 8)
    if step == 3:
        x[1, 3] = float("nan")
    optimizer.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.dtype, t.half()), lambda kept: kept[1].to(kept[0])):
        model(x).square().mean().backward()
    optimizer.step()
torch.save(model.state_dict(), sys.argv[1])
