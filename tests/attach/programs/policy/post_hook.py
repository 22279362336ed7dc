"""A program with a global hook after every update; prints how often it ran."""
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
ran = []
register_optimizer_step_post_hook(lambda optimizer, args, kwargs: ran.append(optimizer))
for step in range(4):
    loss = model(torch.randn(3, 4)).square().mean() * (float("nan") if step == 1 else 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(ran))
