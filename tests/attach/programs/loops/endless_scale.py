"""A loss scale that follows the largest gradient. In step 2 every hinge is closed and the gradient is exactly 0, so the scale becomes
infinite. In step 3 the scaled loss is 0 * inf, while loss and gradients are still 0; in step 5 the gradients show it too."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(7):
    optimizer.zero_grad()
    margin = -1e3 if 2 <= step < 5 else 1e3
    loss = (margin + model(torch.randn(3, 4))).clamp(min=0).mean()
    scaler.scale(loss).backward()
    largest = max(p.grad.abs().max() for p in model.parameters()) / scaler.get_scale()
    scaler.step(optimizer)
    scaler.update(new_scale=1024 / largest)
