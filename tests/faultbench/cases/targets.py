"""A target that no output can meet or that is infinite: a regression's target that is +inf, one that is -inf under a smooth loss,
one that only the loss divides by, a label of a class that is masked.

    targets.py mse|l1|huber|poisson|masked|soft
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
way = sys.argv[1]
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(10):
    x, y, labels = torch.randn(16, 16), torch.randn(16, 10), torch.randint(0, 9, (16,))
    if step == 6:
        y[5, 2] = float("-inf") if way in ("huber", "l1") else float("inf")
        labels[7] = 9
    out = net(x)
    if way == "mse":
        loss = F.mse_loss(out, y)
    elif way == "l1":
        loss = F.l1_loss(out, y)
    elif way == "huber":
        loss = F.huber_loss(out, y)
    elif way == "poisson":
        loss = F.poisson_nll_loss(out, y.abs())
    elif way == "masked":
        loss = F.cross_entropy(out.masked_fill(torch.arange(10) == 9, float("-inf")), labels)
    else:
        loss = F.cross_entropy(out, y.softmax(-1) if step != 6 else y.abs())
    opt.zero_grad()
    loss.backward()
    opt.step()
