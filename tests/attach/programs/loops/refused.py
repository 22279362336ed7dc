"""As torchvision's reference scripts: a loss that is not finite ends the program, before backward."""
import math
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(6):
    loss = model(torch.randn(3, 4) * (1e30 if step == 2 else 1)).square().mean()
    if not math.isfinite(loss.item()):
        print(f"Loss is {loss.item()}, stopping training")
        sys.exit(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
