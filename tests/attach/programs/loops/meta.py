"""MAML: each task takes steps of its own on copies of the weights, with create_graph; the inner rate of iteration 3 overflows."""
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
for iteration in range(6):
    total = 0.0
    for task in range(3):
        x = torch.randn(10, 1)
        y = torch.sin(x + task)
        weights = dict(net.named_parameters())
        for _ in range(3):
            inner = (functional_call(net, weights, (x,)) - y).square().mean()
            gradients = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
            rate = 1e12 if iteration == 3 else 1e-2
            weights = {name: w - rate * g for (name, w), g in zip(weights.items(), gradients)}
        total = total + (functional_call(net, weights, (x + 0.5,)) - torch.sin(x + 0.5 + task)).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
