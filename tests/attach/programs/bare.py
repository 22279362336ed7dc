"""Training without nn.Module and without torch.optim's closure habits: two tensors and an optimizer. Step 3 divides by 0."""
import torch

torch.manual_seed(3)
weight = torch.randn(8, 1, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight, bias], lr=1e-2, momentum=0.9)
for step in range(6):
    x = torch.randn(16, 8)
    if step == 3:
        x = torch.zeros(16, 8)
    scale = (x * x).sum(1, keepdim=True).sqrt()
    loss = (x / scale @ weight + bias).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
