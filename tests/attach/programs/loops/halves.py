"""One backward, two optimizers for the two halves of a model; the second half's gradients are infinite in step 2."""
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 4), nn.Linear(4, 1, bias=False)
optimizers = [torch.optim.SGD(half.parameters(), lr=1e-2) for half in (first, second)]
for step in range(4):
    hidden = first(torch.randn(3, 4)).detach().requires_grad_() if step == 2 else first(torch.randn(3, 4))
    loss = second(hidden)
    if step == 2:
        loss = (loss * 0).abs().sqrt()
    loss.mean().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    if step == 2:
        break
