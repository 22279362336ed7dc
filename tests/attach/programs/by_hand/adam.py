"""A functional Adam in the style of torchopt over a list of leaves, without an epsilon: in step 12 the second moment is 0."""
import torch

torch.manual_seed(0)


def init(params):
    return [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params], 0


def update(grads, state, eps):
    first, second, count = state
    count += 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
    second = [0.99 * v + 0.01 * g * g for v, g in zip(second, grads)]
    moves = [-0.01 * (m / (1 - 0.9**count)) / ((v / (1 - 0.99**count)).sqrt() + eps) for m, v in zip(first, second)]
    return moves, (first, second, count)


def apply(params, moves):
    return [(p + m).detach().requires_grad_() for p, m in zip(params, moves)]


params = [torch.randn(4, 8, requires_grad=True), torch.zeros(8, requires_grad=True), torch.randn(8, 1, requires_grad=True)]
state = init(params)
for step in range(16):
    x = torch.randn(20, 4)
    out = torch.relu(x @ params[0] + params[1]) @ params[2]
    loss = (out[:, 0] - x[:, 0]).square().mean()
    grads = torch.autograd.grad(loss, params)
    if step == 12:
        state = init(params)
        grads = [g * 0 for g in grads]
    moves, state = update(grads, state, 0.0 if step == 12 else 1e-8)
    params = apply(params, moves)
