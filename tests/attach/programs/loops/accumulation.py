"""Three micro-batches an update; the second one of step 2 holds a NaN."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.randn(4, 3, 5, 4)
data[2, 1, 3, 0] = float("nan")
for step in range(4):
    for micro in range(3):
        loss = model(data[step, micro]).square().mean() / 3
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
