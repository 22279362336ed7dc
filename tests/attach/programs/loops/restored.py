"""The state of an optimizer is restored before it has made an update: torch.distributed.checkpoint has it make one of nothing first, after
the model was looked at. The batch of step 2 has a NaN."""
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model(torch.randn(3, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
set_optimizer_state_dict(model, optimizer, get_optimizer_state_dict(model, optimizer))
for step in range(4):
    x = torch.randn(3, 4)
    if step == 2:
        x[1, 2] = float("nan")
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
