"""A module with an optimizer of the program's own, which puts other memory into the weights. Step 12 takes the root of a negative
number."""
import torch
from torch import nn


class Descent:
    def __init__(self, parameters):
        self.parameters = list(parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for p in self.parameters:
            p.data = p.data - 0.1 * p.grad


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = Descent(net.parameters())
for step in range(16):
    optimizer.zero_grad()
    loss = (net(torch.randn(8, 4)).square().mean() + (-1e9 if step == 12 else 1)).sqrt()
    loss.backward()
    optimizer.step()
