"""A regression whose learning rate is too large: the loss grows with every step, until it leaves fp32's range.

usage: diverges.py STEPS [FROM CHANGE]      from step FROM on with lr=*FACTOR, warmup=STEPS or clip=NORM
"""
import hashlib
import sys

import torch
from torch import nn

steps = int(sys.argv[1])
later, change = (int(sys.argv[2]), sys.argv[3]) if len(sys.argv) > 2 else (steps, "lr=*1")
key, value = change.split("=")


def share(step):
    if step < later or key == "clip":
        return 1
    return float(value[1:]) if key == "lr" else min((step - later + 1) / int(value), 1)


torch.manual_seed(1)
model = nn.Sequential(nn.Dropout(0.1), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=12.0, momentum=0.5)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - 0.001 * step) * share(step))
data = torch.utils.data.TensorDataset(torch.randn(640, 8), torch.randn(640, 4))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
step = 0
while step < steps:
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if key == "clip" and step >= later:
            nn.utils.clip_grad_norm_(model.parameters(), float(value))
        optimizer.step()
        scheduler.step()
        print(f"{step} {loss.item():.9g}")
        step += 1
        if step == steps:
            break
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
