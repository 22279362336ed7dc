"""Like in JAX: a dictionary of parameters, torch.func.grad_and_value, and a pure update. Step 12 overflows in an exponential."""
import torch
from torch.func import grad_and_value

torch.manual_seed(0)


def initial(sizes):
    return {f"layer{i}": {"w": torch.randn(n, m) / n**0.5, "b": torch.zeros(m)} for i, (n, m) in enumerate(zip(sizes, sizes[1:]))}


def net(params, x):
    for i, layer in enumerate(params.values()):
        x = x @ layer["w"] + layer["b"]
        x = torch.relu(x) if i < len(params) - 1 else x
    return x[:, 0]


def loss_of(params, x, y, shift):
    return torch.log1p(torch.exp(net(params, x) * y + shift)).mean()


def updated(params, grads):
    return {name: {key: params[name][key] - 0.1 * grads[name][key] for key in layer} for name, layer in params.items()}


params, step_of = initial([6, 12, 1]), grad_and_value(loss_of)
for step in range(16):
    x = torch.randn(24, 6)
    y = torch.sign(x[:, 0])
    grads, loss = step_of(params, x, y, 200.0 if step == 12 else 0.0)
    params = updated(params, grads)
