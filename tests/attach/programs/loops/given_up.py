"""The program looks at its loss and leaves a bad step out: before backward in step 2, after it in step 4."""
import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(3, 4)
    if step in (2, 4):
        x[0, 0] = float("nan")
    optimizer.zero_grad()
    loss = model(x).square().mean()
    if step == 2 and not math.isfinite(loss.item()):
        continue
    loss.backward()
    if step == 4 and not torch.isfinite(loss):
        continue
    optimizer.step()
