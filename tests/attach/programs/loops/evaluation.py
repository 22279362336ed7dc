"""Evaluation between the steps, with and without gradients; one of them sees a NaN, which harms nothing. The training
goes wrong in step 3."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
data = torch.randn(4, 6, 4)
data[3, 0] = float("inf")
for step in range(4):
    model(data[step]).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        model(torch.full((2, 4), float("nan")))
    for _ in range(3):
        model(torch.randn(2, 4))
    model.train()
