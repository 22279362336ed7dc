"""What surrounds a step: threads, workers, scripts, operators of other libraries, compilers."""

import os
import threading

import torch
from registry import feature, param
from torch import nn


@feature("background threads")
def threads():
    w = param(4, 4)
    results = []

    def work(n):
        a = torch.randn(16, 16, generator=torch.Generator().manual_seed(n), requires_grad=True)
        (a @ a).relu().sum().backward()
        results.append(a.grad.sum().item())

    def step(i):
        others = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in others:
            thread.start()
        loss = (torch.randn(3, 4) @ w).square().mean()
        for thread in others:
            thread.join()
        return loss + 0 * len(results)
    return [w], step


@feature("values made in another thread")
def made_elsewhere():
    w = param(4, 4)

    def step(i):
        made = []
        maker = threading.Thread(target=lambda: made.append(torch.full((3, 4), 0.5 + i).cumsum(0)))
        maker.start()
        maker.join()
        return (made[0] @ w).square().mean()
    return [w], step


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), index / 64).square(), index


@feature("DataLoader workers")
def workers():
    w = param(4, 4)
    batches = iter(torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2))

    def step(i):
        x, index = next(batches)
        return (x @ w).square().mean() + index.float().mean()
    return [w], step


@feature("torch.jit.script")
def script():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

        def forward(self, x):
            y = torch.relu(self.a(x))
            if bool(y.sum() > 0):
                y = y * 2
            return self.b(y)

    net = torch.jit.script(Net())
    return list(net.parameters()), lambda i: net(torch.randn(6, 4)).square().mean()


@feature("torch.jit.trace")
def trace():
    net = torch.jit.trace(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(6, 4))
    return list(net.parameters()), lambda i: net(torch.randn(6, 4)).square().mean()


@torch.library.custom_op("nanquest_test::scaled_sin", mutates_args=())
def scaled_sin(x: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(x.detach().numpy() * 2.0), x.sin() * factor


scaled_sin.register_autograd(
    lambda ctx, a, b: (a * 2 + b * ctx.saved_tensors[0].cos() * 0.5, None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))


@torch.library.custom_op("nanquest_test::shift_", mutates_args={"x"})
def shift_(x: torch.Tensor, by: float) -> None:
    x.numpy()[...] += by


@feature("custom operator in Python")
def python_op():
    w = param(4, 4)

    def step(i):
        double, sine = scaled_sin((torch.randn(3, 4) @ w), 0.5)
        moved = torch.zeros(3, 4)
        shift_(moved, 0.25)
        return double.square().mean() + (sine * moved).sum()
    return [w], step


@feature("custom operator in C++")
def cpp_op():
    library = os.environ.get("NANQUEST_TEST_OPS")
    if not library:
        return None
    torch.ops.load_library(library)
    w = param(4, 4)

    def step(i):
        low, high = torch.ops.nanquest_test_cpp.split_sign(torch.randn(3, 4) @ w)
        count = torch.zeros(1)
        torch.ops.nanquest_test_cpp.count_(count, low)
        return low.square().mean() + high.sum() + count.sum()
    return [w], step


@feature("torch.compile, backend aot_eager")
def aot_eager():
    torch._dynamo.reset()
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    compiled = torch.compile(net, backend="aot_eager")
    return list(net.parameters()), lambda i: compiled(torch.randn(6, 4)).square().mean()


@feature("torch.compile, Inductor", group="compiler")
def inductor():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    compiled = torch.compile(net)
    return list(net.parameters()), lambda i: compiled(torch.randn(6, 4)).square().mean()


@feature("torch.compile, Inductor, graph break and buffers", group="compiler")
def inductor_break():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.norm = nn.Linear(4, 8), nn.Linear(8, 1), nn.BatchNorm1d(8)

        def forward(self, x):
            y = self.norm(self.a(x)).relu()
            if y.sum().item() > -1e9:
                y = y.sin()
            return self.b(y)

    net = Net()
    compiled = torch.compile(net)
    return [*net.parameters()], lambda i: compiled(torch.randn(6, 4)).square().mean()
