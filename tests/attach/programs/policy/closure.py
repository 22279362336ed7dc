"""A regression in fp16 with a scaler, then one with a closure; the fallback is taken in between."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(8):
    def closure(scale=lambda loss: loss):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = model(torch.randn(3, 4)).float().square().mean() * (float("nan") if step == 2 else 1.0)
        scale(loss).backward()
        return loss

    if step < 5:
        closure(scaler.scale)
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step(closure)
