"""Gradients of each example by vmap(grad(...)), clipped, with noise: DP-SGD. In step 12 one example has a norm of exactly zero, and
dividing by it gives NaN where 0 * inf is added."""
import torch
from torch.func import grad, vmap

torch.manual_seed(0)
params = {"w": torch.randn(10), "b": torch.zeros(())}
true = torch.randn(10)


def loss_of(p, x, y, rated):
    return rated * (x @ p["w"] + p["b"] - y).square()


per_example = vmap(grad(loss_of), in_dims=(None, 0, 0, 0))
for step in range(16):
    x = torch.randn(32, 10)
    y = torch.tanh(x @ true)
    rated = torch.ones(32)
    if step == 12:
        rated[5] = 0
    g = per_example(params, x, y, rated)
    norms = torch.stack([v.reshape(32, -1).norm(dim=1) for v in g.values()]).norm(dim=0)
    factor = 0.5 / norms
    params = {k: p - 0.3 * torch.einsum("b,b...->...", factor, g[k]) / 32 for k, p in params.items()}
