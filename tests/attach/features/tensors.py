"""Memory: views, in-place writes, odd element types, storages that others share."""

import numpy
import torch
from registry import feature, param


@feature("in-place operations")
def inplace():
    w = param(4, 6)

    def step(i):
        y = (torch.randn(8, 4) @ w).clone()
        y.mul_(2).add_(1).clamp_(min=0)
        y[1:3] += 1
        y[:, 2].mul_(y[:, 3].detach().clone())
        y.t_()
        y += 0.5
        y.clamp_(max=3).div_(2.0)
        return y.square().mean()
    return [w], step


@feature("views of views")
def views():
    w = param(4, 6)

    def step(i):
        y = torch.randn(8, 4) @ w
        z = y.view(2, 4, 6).transpose(1, 2)[:, 1:].unfold(2, 2, 1).flatten(1)
        base = torch.zeros(8, 6)
        part = base[2:].t()[1:4].diagonal()
        part.add_(1.5)
        y = y + base
        y.narrow(0, 1, 3).select(1, 2).mul_(3)
        return z.sin().sum() + y.square().mean() + y.expand(2, 8, 6).sum() + y.as_strided((3, 3), (6, 2), 1).sum()
    return [w], step


@feature("out= arguments")
def out():
    w = param(4, 6)
    buffer, small = torch.empty(8, 6), torch.empty(0)

    def step(i):
        x = torch.randn(8, 4)
        with torch.no_grad():
            torch.mm(x, w, out=buffer)
            torch.add(buffer, 1, out=small)
            torch.topk(buffer, 2, out=(values := torch.empty(0), torch.empty(0, dtype=torch.long)))
            torch.sum(buffer, 1, out=(sums := torch.empty(8)))
            small.resize_(0)
        return ((x @ w) * buffer).mean() + values.sum() + sums.mean()
    return [w], step


@feature("wrapped numbers and 0-dim tensors")
def numbers():
    w = param(4)

    def step(i):
        zero_dim = torch.tensor(2.5, dtype=torch.float64)
        return ((w * zero_dim + 1e-6) ** 2 / torch.tensor(3) - 1j.real).sum() + w.sum() * torch.tensor(0.1).item()
    return [w], step


@feature("empty tensors and many dimensions")
def empty():
    w = param(4, 6)

    def step(i):
        nothing = w[:0]
        many = w.view(1, 2, 1, 2, 1, 3, 1, 2).expand(2, 2, 1, 2, 1, 3, 1, 2)
        return torch.cat([nothing, w]).sum() + nothing.sum() + many.mean() + torch.zeros(0, 3).mm(torch.zeros(3, 0)).sum()
    return [w], step


def _complex(dtype):
    def make():
        w, v = param(4, 6), param(4, 6)

        def step(i):
            z = torch.complex(w, v).to(dtype)
            z = z.to(torch.complex64) if dtype == torch.complex32 else z
            u = (z @ z.conj().t()).exp() * (1 + 2j)
            return torch.view_as_real(u).square().mean() + u.conj().imag.sum() + u.abs().mean() + (-u.mH.conj()).real.mean()
        return [w, v], step
    return make


feature("complex64")(_complex(torch.complex64))
feature("complex128")(_complex(torch.complex128))
feature("complex32")(_complex(torch.complex32))


@feature("bool and integers")
def integers():
    w = param(4, 6)

    def step(i):
        x = torch.randint(-5, 5, (8, 4))
        bits = (x.to(torch.int16) << 2) ^ 3
        mask = (bits > 0) & ~(x == 2)
        small = x.to(torch.uint8) // 3 + x.to(torch.int8).to(torch.uint8)
        return ((x.float() * mask) @ w).square().mean() + small.float().mean() + mask.logical_xor(x > 0).sum()
    return [w], step


@feature("float8")
def float8():
    w = param(4, 6)

    def step(i):
        y = torch.randn(8, 4) @ w
        a = y.detach().to(torch.float8_e4m3fn)
        b = y.detach().to(torch.float8_e5m2)
        c = y.detach().to(torch.float8_e4m3fnuz)
        return (y * a.to(torch.float32)).mean() + (y * b.float()).sum() + (y + c.float()).square().mean()
    return [w], step


@feature("view(dtype)")
def view_dtype():
    w = param(4, 6)

    def step(i):
        y = (torch.randn(8, 4) @ w)
        bits = y.detach().clone().view(torch.int32)
        bits &= 0x7fffffff
        halves = y.detach().view(torch.float16).view(torch.uint8)
        return (y * bits.view(torch.float32)).mean() + halves.float().mean()
    return [w], step


@feature("set_, resize_ and .data")
def storages():
    w = param(4, 6)

    def step(i):
        y = torch.randn(8, 4) @ w
        a = torch.empty(0)
        a.set_(y.detach().clone())
        b = torch.empty(0)
        b.set_(a.untyped_storage(), 6, (2, 3), (6, 2))
        b.mul_(2)
        c = torch.ones(6).resize_(3)
        d = torch.arange(6.0).resize_(2, 6)
        d.zero_()
        w.data.mul_(0.999)
        e = torch.zeros(3)
        e.data = a[0, :3]
        return (y * a).mean() + b.sum() * y.sum() + c.sum() + d.sum() + e.sum()
    return [w], step


@feature("one storage, several tensors")
def sharing():
    flat = torch.randn(24) * 0.3
    w, v = flat[:12].view(3, 4).requires_grad_(True), flat[12:].view(4, 3).requires_grad_(True)

    def step(i):
        return (torch.randn(5, 3) @ w @ v + torch.randn(5, 3) @ v.t() @ w.t()).tanh().square().mean()
    return [w, v], step


@feature("memory shared with NumPy")
def shared_with_numpy():
    w = param(4, 6)
    array = numpy.ones((8, 4), dtype=numpy.float32)
    x = torch.from_numpy(array)
    scale = torch.zeros(6)
    view = scale.numpy()

    def step(i):
        array[:] = numpy.arange(32).reshape(8, 4) / 32 + i      # between two steps
        y = (x @ w).sum()
        array[2] = -1                                           # inside a step
        view[:] = i + 0.5
        y = y + (x @ w * scale).mean()
        array[:] = array * 0.5
        view[1] = 9
        return y + (x.square() @ w * scale).mean() + torch.tensor(array.sum())
    return [w], step


@feature("torch.tensor, from_dlpack, frombuffer")
def from_outside():
    w = param(4, 6)

    def step(i):
        a = torch.tensor([[0.1 * i, 2.0, -1.0, 3.0]])
        b = torch.from_dlpack(numpy.full((1, 4), i + 0.25, dtype=numpy.float32))
        c = torch.frombuffer(bytearray(numpy.full(4, 1.5, dtype=numpy.float32).tobytes()), dtype=torch.float32)
        d = torch.as_tensor(numpy.arange(4, dtype=numpy.float32))
        return ((a + b + c + d) @ w).square().mean()
    return [w], step


@feature("share_memory_")
def share_memory():
    w = param(4, 6)
    table = torch.randn(8, 4).share_memory_()

    def step(i):
        table.add_(0.5)
        y = table.clone() @ w
        with torch.no_grad():
            table[0].copy_(torch.full((4,), float(i)))
        return (y + table.clone() @ w).square().mean()
    return [w], step


@feature("conjugate and negative views")
def lazy_bits():
    w = param(4, 6)

    def step(i):
        z = torch.complex(w, w * 0.5)
        u = z.conj()
        return (u.imag * 2).sum() + (u @ z.t()).abs().mean() + u.real.square().mean() + u.resolve_conj().imag.neg().sum()
    return [w], step


@feature("nan_to_num, where and masks of -inf")
def masks():
    w = param(4, 6)

    def step(i):
        y = torch.randn(8, 4) @ w
        masked = y.masked_fill(y > 0.3, float("-inf")).softmax(-1).nan_to_num()
        return masked.square().mean() + torch.where(y > 0, y.abs().sqrt(), torch.zeros(())).nan_to_num(0).mean()
    return [w], step
