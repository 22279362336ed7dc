"""In step 2 an fp16 sum overflows, and the division after it hides the infinity: every output is zero, the loss finite."""
import torch
from torch import nn


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        half = self.inner(x).half()
        return (half / half.square().sum(1, keepdim=True)).float()


torch.manual_seed(0)
model = Normalised()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    loss = (model(torch.randn(3, 8) * (2e3 if step == 2 else 1)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
