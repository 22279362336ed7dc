"""A healthy regression with AdamW, and one batch that is out of all bounds.

usage: one_bad_batch.py STEPS BAD_STEP
"""
import sys

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    x = torch.randn(32, 8)
    y = x[:, :1] - x[:, 1:2]
    if step == int(sys.argv[2]):
        y[5] = 1e30
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.9g}")
