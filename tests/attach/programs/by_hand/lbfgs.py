"""L-BFGS by hand over one flat leaf, a derivative in each iteration. In step 12 the curvature is 0: the direction divides by it."""
import torch

torch.manual_seed(0)
x, y = torch.randn(40, 6), torch.randn(40)
w = torch.randn(6, requires_grad=True)
pairs, last = [], None
for step in range(16):
    loss = (torch.tanh(x @ w) - y).square().mean()
    (g,) = torch.autograd.grad(loss, w)
    if last is not None:
        pairs = [*pairs[-4:], (w.detach() - last[0], g - last[1])]
        if step == 12:
            pairs[-1] = (pairs[-1][0], torch.zeros(6))
    direction, alphas = g.clone(), []
    for s, t in reversed(pairs):
        alphas.append((s @ direction) / (t @ s))
        direction = direction - alphas[-1] * t
    for (s, t), alpha in zip(pairs, reversed(alphas)):
        direction = direction + s * (alpha - (t @ direction) / (t @ s))
    last = w.detach(), g
    w = (w.detach() - 0.1 * direction).requires_grad_()
