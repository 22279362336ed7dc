"""In step 2 the update itself makes NaN: the second moment is zero, and so is Adam's epsilon."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1, bias=False)
optimizer = torch.optim.Adam(model.parameters(), eps=0.0, foreach=False)
for step in range(4):
    if step == 2:
        optimizer = torch.optim.Adam(model.parameters(), eps=0.0, foreach=False)
    loss = model(torch.randn(3, 4)).square().mean() * (0.0 if step == 2 else 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
