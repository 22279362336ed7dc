"""Autograd: functions with derivatives of their own, derivatives of derivatives, hooks, transforms."""

import torch
from registry import feature, param
from torch import nn


class Scaled(torch.autograd.Function):
    """With state that is no tensor."""
    @staticmethod
    def forward(ctx, x, factor, names):
        ctx.factor, ctx.names = factor, names
        ctx.save_for_backward(x)
        return x.exp() * factor

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        assert ctx.names == {"a": [1, 2]}
        return grad * x.exp() * ctx.factor, None, None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad, _):
        return grad * ctx.saved_tensors[0].cos()


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


@feature("autograd.Function")
def custom_function():
    w = param(4, 6)

    def step(i):
        y = Scaled.apply(torch.randn(8, 4) @ w, 0.5, {"a": [1, 2]})
        sine, cosine = Once.apply(y)
        return sine.square().mean() + cosine.mean() + InPlace.apply(y.clone()).mean()
    return [w], step


@feature("autograd.Function, second derivative")
def custom_double():
    w = param(4)

    def step(i):
        y = Scaled.apply(w, 0.5, {"a": [1, 2]}).sum()
        first, = torch.autograd.grad(y, w, create_graph=True)
        second, = torch.autograd.grad(first.square().sum(), w, create_graph=True)
        return y + second.square().sum()
    return [w], step


@feature("higher derivatives (gradient penalty)")
def penalty():
    net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))

    def step(i):
        x = torch.randn(6, 4, requires_grad=True)
        out = net(x).sum()
        g, = torch.autograd.grad(out, x, create_graph=True)
        return out.square() + (g.norm(dim=1) - 1).square().mean()
    return list(net.parameters()), step


def halve(parameter):
    parameter.grad.mul_(0.5)


@feature("hooks of tensors, nodes and modules")
def hooks():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    net[0].register_full_backward_hook(lambda m, gi, go: (None if gi[0] is None else gi[0] * 0.5,))
    net[1].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    net[2].register_forward_hook(lambda m, args, out: out * 1.5)
    net[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
    net[0].bias.register_post_accumulate_grad_hook(halve)

    def step(i):
        y = net(torch.randn(6, 4))
        y.grad_fn.register_hook(lambda gi, go: None)
        y.register_hook(lambda g: g + 0.01)
        return y.square().mean()
    return list(net.parameters()), step


@feature("saved-tensor hooks")
def saved_hooks():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step(i):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.to(torch.float64), lambda t: t.to(torch.float32)):
            y = net(torch.randn(6, 4))
        with torch.autograd.graph.save_on_cpu():
            return y.square().mean()
    return list(net.parameters()), step


def _checkpoint(reentrant):
    def make():
        from torch.utils.checkpoint import checkpoint
        net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 8)), nn.Linear(8, 1))

        def step(i):
            return net[2](checkpoint(net[1], net[0](torch.randn(6, 4)), use_reentrant=reentrant)).square().mean()
        return list(net.parameters()), step
    return make


feature("checkpointing")(_checkpoint(False))
feature("checkpointing, reentrant")(_checkpoint(True))


@feature("forward-mode derivatives")
def forward_mode():
    import torch.autograd.forward_ad as fwad
    w = param(4)

    def step(i):
        with fwad.dual_level():
            dual = fwad.make_dual(w, torch.ones(4))
            value, tangent = fwad.unpack_dual((dual.sin() * dual).exp())
        return value.sum() + tangent.square().mean()
    return [w], step


@feature("vmap")
def vmap():
    w = param(4, 6)

    def step(i):
        x = torch.randn(5, 8, 4)
        return torch.vmap(lambda a: (a @ w).softmax(-1).log())(x).mean() + torch.vmap(torch.dot)(x[0], x[1]).sum()
    return [w], step


@feature("torch.func: grad, vjp, jvp, jacrev")
def func():
    from torch.func import grad, jacrev, jvp, vjp
    w = param(4)

    def step(i):
        f = lambda v: (v.sin() * v).sum()  # noqa: E731
        _, pull = vjp(f, w)
        return (grad(f)(w).square().sum() + jvp(f, (w,), (torch.ones(4),))[1] + pull(torch.tensor(2.0))[0].sum()
                + jacrev(lambda v: v.square())(w).sum() + torch.func.hessian(f)(w).diagonal().sum())
    return [w], step


@feature("torch.func: per-sample gradients of a module")
def functional_call():
    from torch.func import functional_call, grad
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step(i):
        parameters = dict(net.named_parameters())
        x = torch.randn(6, 4)
        loss = lambda p, a: functional_call(net, p, (a,)).square().sum()  # noqa: E731
        each = torch.vmap(grad(loss), in_dims=(None, 0))({k: v.detach() for k, v in parameters.items()}, x)
        return loss(parameters, x) + sum(g.mean() for g in each.values())
    return list(net.parameters()), step


@feature("parametrizations: weight norm, spectral norm")
def parametrized():
    from torch.nn.utils import parametrizations
    net = nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 8)), nn.Tanh(),
                        parametrizations.spectral_norm(nn.Linear(8, 1)))
    return list(net.parameters()), lambda i: net(torch.randn(6, 4)).square().mean()


@feature("anomaly mode and profiler")
def watched():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step(i):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            y = net(torch.randn(6, 4))
        with torch.autograd.set_detect_anomaly(True):
            return net(torch.randn(6, 4)).square().mean() + y.mean()
    return list(net.parameters()), step


@feature("inference_mode, no_grad, autocast inside a step")
def modes():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step(i):
        x = torch.randn(6, 4)
        with torch.inference_mode():
            a = net(x).mean().item()
        with torch.no_grad():
            b = net(x)
        with torch.autocast("cpu", torch.bfloat16):
            c = net(x)
            with torch.autocast("cpu", enabled=False):
                d = net(x)
        return (c.float() + d).square().mean() * a + b.mean()
    return list(net.parameters()), step
