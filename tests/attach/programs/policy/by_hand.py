"""Weights written by hand, running statistics, and a step that the program gives up; with an argument it gives the batch up before
it is used. Prints statistics and the next random numbers."""
import math
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
for step in range(8):
    x = torch.randn(3, 4)
    if step == 5:
        x[0, 0] = float("nan")
        if len(sys.argv) > 1:
            continue
    model.zero_grad()
    loss = model(x).square().mean()
    if not math.isfinite(loss.item()):
        continue
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
print(model[1].running_mean.tolist(), model[1].num_batches_tracked.item(), torch.rand(2).tolist())
