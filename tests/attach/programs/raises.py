"""Step 3 makes NaN, and the loss refuses it: the program ends by an exception, before there is a loss.

usage: raises.py KIND     # nan: as said; shape: another error, beside a mask of -Inf that is meant
"""
import sys

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
kind = sys.argv[1]
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hidden = torch.tensor([False, False, True, True])
for step in range(6):
    x, y = torch.randn(4, 8), torch.rand(4, 4)
    h = model(x)
    if step == 3 and kind == "nan":
        h = torch.log(h - 1000)
    masked = h.masked_fill(hidden, -torch.inf)
    if step == 3 and kind == "shape":
        y = y[:3]
    loss = functional.binary_cross_entropy(torch.sigmoid(masked), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
