"""A regression whose learning rate is too large: the loss grows with every step, until it leaves fp32's range.

usage: diverges.py STEPS [FROM FACTOR]      from step FROM on with so much of the rate
"""
import hashlib
import sys

import torch
from torch import nn

steps = int(sys.argv[1])
later, factor = (int(sys.argv[2]), float(sys.argv[3])) if len(sys.argv) > 2 else (steps, 1.0)
torch.manual_seed(1)
model = nn.Sequential(nn.Dropout(0.1), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=12.0, momentum=0.5)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - 0.001 * step) * (factor if step >= later else 1))
data = torch.utils.data.TensorDataset(torch.randn(640, 8), torch.randn(640, 4))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
step = 0
while step < steps:
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"{step} {loss.item():.9g}")
        step += 1
        if step == steps:
            break
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
