"""A loop that looks at its loss, goes on without a word where it is bad, and clears gradients only after an update: steps 2,
4 and 5, and the last of all."""
import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(9):
    x = torch.randn(3, 4)
    if step in (2, 4, 5, 8):
        x[0, 0] = float("nan")
    loss = model(x).square().mean()
    if not math.isfinite(loss.item()):
        continue
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
