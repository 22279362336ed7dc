"""torch.func.grad of a module by functional_call, with SGD by hand in place. In step 12 a sample of the batch is NaN."""
import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
params = {name: p.detach().clone() for name, p in net.named_parameters()}
gradient = grad(lambda p, x, y: (functional_call(net, p, (x,)).squeeze(1) - y).square().mean())
for step in range(16):
    x = torch.randn(24, 6)
    y = x.sum(1)
    if step == 12:
        x[3, 2] = float("nan")
    for name, g in gradient(params, x, y).items():
        params[name].sub_(0.05 * g)
