"""A net in float32 or by autocast in bfloat16, with another epsilon if asked: formats.py fp32|bf16 [EPS]."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

FORMAT, EPS = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1e-5
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(48, 64), nn.LayerNorm(64, eps=EPS), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
x, y = torch.randn(64, 48), torch.randint(0, 10, (64,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    with torch.autocast("cpu", torch.bfloat16, enabled=FORMAT == "bf16"):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
