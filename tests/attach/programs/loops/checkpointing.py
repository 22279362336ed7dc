"""Blocks are computed again in backward, by both kinds of checkpoint; in step 2 a block divides by zero."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, scale):
        return torch.tanh(self.inner(x)) / scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x, scale):
        x = checkpoint(self.blocks[0], x, torch.ones(()), use_reentrant=False)
        return checkpoint(self.blocks[1], x, scale, use_reentrant=True)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    x = torch.randn(3, 4, requires_grad=True)
    loss = model(x, torch.zeros(()) if step == 2 else torch.ones(())).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
