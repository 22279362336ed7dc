"""In step 2 all gradients are finite, but their fp32 norm is not: clipping makes every one of them zero."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    loss = model(torch.randn(3, 4)).mean() * (1e25 if step == 2 else 1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
