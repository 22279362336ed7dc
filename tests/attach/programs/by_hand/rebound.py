"""The same by rebinding: each update makes new leaves. The gradient of step 12 is infinite at 0, its loss is finite."""
import torch

torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
true = torch.randn(5)
for step in range(16):
    x = torch.randn(32, 5)
    error = x @ w + b - x @ true
    loss = error.square().mean() + ((w * 0).sqrt().sum() if step == 12 else 0)
    loss.backward()
    w = (w - 0.05 * w.grad).detach().requires_grad_()
    b = (b - 0.05 * b.grad).detach().requires_grad_()
