"""Linear regression with two plain tensors: torch.autograd.grad and an update in place. Step 12 takes the root of a negative number."""
import torch

torch.manual_seed(0)
w, b = torch.randn(5, requires_grad=True), torch.zeros(1, requires_grad=True)
true = torch.randn(5)
for step in range(16):
    x = torch.randn(32, 5)
    error = x @ w + b - x @ true
    squared = error.square().mean()
    loss = (squared - (1e4 if step == 12 else 0)).sqrt()
    gw, gb = torch.autograd.grad(loss, (w, b))
    with torch.no_grad():
        w -= 0.05 * gw
        b -= 0.05 * gb
