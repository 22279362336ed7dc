"""LBFGS calls forward and backward from inside its step; in step 2 the target is NaN."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
for step in range(3):
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    if step == 2:
        y[4, 0] = float("nan")

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
