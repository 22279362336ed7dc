"""A weight that is NaN from the beginning and is not read before step 3."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.absent = nn.Parameter(torch.full((4,), float("nan")))

    def forward(self, x, absent):
        y = self.layer(x)
        return torch.where(absent[:, None], self.absent, y) if absent.any() else y


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(6):
    absent = torch.zeros(5, dtype=torch.bool)
    absent[2] = step == 3
    loss = model(torch.randn(5, 4), absent).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
