"""fp16 with a loss scale that is far too high at first and grows after every good step: it changes all the time.

usage: scaled.py WEIGHTS_FILE; prints how often the scale changed, and how many halvings came in a row at most.
"""
import sys

import torch
from torch import nn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**28, growth_interval=2)
changes = in_a_row = longest = 0
for step in range(24):
    x = torch.randn(4, 8)
    with torch.autocast("cpu", torch.float16):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    changes += scaler.get_scale() != before
    in_a_row = in_a_row + 1 if scaler.get_scale() < before else 0
    longest = max(longest, in_a_row)
print(changes, longest)
torch.save(model.state_dict(), sys.argv[1])
