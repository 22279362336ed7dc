"""Two losses of one forward pass, each with a backward of its own; the second is infinite in step 2."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(3):
    out = model(torch.randn(3, 4))
    first = out[:, 0].square().mean()
    second = (out[:, 1].abs() * (0 if step == 2 else 1)).log().mean()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
