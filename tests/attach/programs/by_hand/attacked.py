"""Adversarial training by hand: the derivative by the examples is an inner one, each starts from new noise. Only the second derivative
trains. Step 12 has an infinite label."""
import torch

torch.manual_seed(0)
params = [torch.randn(4, 8, requires_grad=True), torch.randn(8, 1, requires_grad=True)]


def net(x):
    return (torch.tanh(x @ params[0]) @ params[1])[:, 0]


for step in range(16):
    x, y = torch.randn(20, 4), torch.randn(20)
    if step == 12:
        y[7] = torch.inf
    worst = (x + 0.01 * torch.randn(20, 4)).requires_grad_()
    for _ in range(3):
        (slope,) = torch.autograd.grad((net(worst) - y).square().mean(), worst)
        worst = (worst + 0.02 * slope.sign()).detach().requires_grad_()
    loss = (net(worst.detach()) - y).square().mean()
    gradients = torch.autograd.grad(loss, params)
    params = [(p - 0.02 * g).detach().requires_grad_() for p, g in zip(params, gradients)]
