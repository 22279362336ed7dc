"""A scripted model with a buffer that a bad step spoils. Prints the buffer."""
import torch
from torch import nn


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 1)
        self.register_buffer("sums", torch.zeros(4))

    def forward(self, x):
        self.sums.add_(x.sum(0))
        return self.line(x)


torch.manual_seed(0)
model = torch.jit.script(Counts())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(6):
    x = torch.ones(3, 4)
    if step == 3:
        x[0, 0] = float("nan")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.sums.tolist())
