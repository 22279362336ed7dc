"""A bad batch some steps before the failure: finite there, but what it did to the weights is not survived."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
way = sys.argv[1]
x, goal = torch.randn(2048, 16), torch.randn(2048, 1)
y = x @ torch.randn(16, 1)
bad = slice(1280, 1312)
if way == "labels":
    y[bad] *= 1000
net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), 1e-2)
for step in range(60):
    rows = slice(step * 32, step * 32 + 32)
    loss = (net(x[rows]) - y[rows]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
