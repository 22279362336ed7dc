"""A multilayer perceptron on noise; sample 2 of step BAD has one element of this value.

usage: mlp.py OPTIMIZER BAD VALUE [WEIGHTS_FILE]
"""
import sys

import torch
from torch import nn

name, bad, value = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.BatchNorm1d(32), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "adamw-foreach": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
    "adafactor": lambda p: torch.optim.Adafactor(p),
}[name](model.parameters())
for step in range(8):
    x = torch.randn(16, 8)
    y = x.sum(1, keepdim=True)
    if step == bad:
        x[2, 3] = value
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        model.eval()
        model(torch.randn(4, 8))
        model.train()
if len(sys.argv) > 4:
    torch.save(model.state_dict(), sys.argv[4])
