"""One rank of thousands according to its variables; it does not communicate. In step 3 its loss is the logarithm of zero."""
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    y = model(torch.randn(6, 4))
    if step == 3:
        y = y + (y * 0).sum().log()
    y.square().mean().backward()
    optimizer.step()
