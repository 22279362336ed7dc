"""An optimizer whose closure lets another one write: prints the rates in the middle of the first one's update, and after it."""
import torch
from torch import nn

torch.manual_seed(0)
model, head = nn.Linear(4, 3), nn.Linear(3, 1)
outer, inner = torch.optim.SGD(model.parameters(), lr=1.0), torch.optim.SGD(head.parameters(), lr=0.25)
for step in range(5):
    def closure():
        outer.zero_grad()
        inner.zero_grad()
        loss = head(model(torch.randn(3, 4))).square().mean() * (float("nan") if step == 1 else 0.001)
        loss.backward()
        inner.step()
        if step == 4:
            print(outer.param_groups[0]["lr"])
        return loss

    outer.step(closure)
print(outer.param_groups[0]["lr"], inner.param_groups[0]["lr"])
