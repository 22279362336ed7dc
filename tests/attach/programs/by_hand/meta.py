"""MAML in torch.func: the inner derivatives are differentiated again. One step is one outer derivative; the inner rate of step 12 is
absurd."""
import torch
from torch.func import grad, vmap

torch.manual_seed(0)
params = {"w": torch.randn(1, 12), "b": torch.zeros(12), "out": torch.randn(12, 1) / 4}


def loss_of(p, x, y):
    return ((torch.relu(x @ p["w"] + p["b"]) @ p["out"]) - y).square().mean()


def adapted(p, x, y, rate):
    inner = grad(loss_of)(p, x, y)
    return loss_of({k: p[k] - rate * inner[k] for k in p}, x, y)


for step in range(16):
    x = torch.randn(4, 10, 1)
    rate = 1e30 if step == 12 else 0.01
    outer = grad(lambda p, x, y, rate=rate: vmap(adapted, in_dims=(None, 0, 0, None))(p, x, y, rate).mean())
    change = outer(params, x, torch.sin(x))
    params = {k: params[k] - 0.01 * change[k] for k in params}
