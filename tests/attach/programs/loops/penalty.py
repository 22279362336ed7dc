"""A gradient penalty: torch.autograd.grad inside the loss, differentiated again. In step 2 the gradient is exactly zero,
where the norm has no derivative."""
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters())
for step in range(3):
    x = torch.randn(3, 4, requires_grad=True)
    score = critic(x) * (0.0 if step == 2 else 1.0)
    slope, = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = score.mean() + (slope.square().sum(1).sqrt() - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
