"""fp16 with a loss scaler: the overflow of step 1 is the scaler's business, and it leaves that update out; the NaN of
step 3 is not."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
for step in range(5):
    x = torch.randn(3, 4)
    if step == 3:
        x[0, 0] = float("nan")
    factor = 1e36 if step == 1 else 1.0
    loss = model(x).square().mean() * factor
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
