"""Tensors that are no plain memory: sparse, nested, quantised, meta, fake, subclasses."""

import torch
from registry import feature, param
from torch import nn


@feature("sparse embedding gradients, SparseAdam")
def sparse_embedding():
    table = nn.Embedding(10, 4, sparse=True)

    def step(i):
        return table(torch.randint(0, 10, (6,))).square().mean()
    return list(table.parameters()), step, torch.optim.SparseAdam(table.parameters(), lr=0.05)


@feature("sparse embedding gradients, SGD and embedding_bag")
def sparse_bag():
    bag, head = nn.EmbeddingBag(10, 4, mode="sum", sparse=True), nn.Linear(4, 1)

    def step(i):
        return head(bag(torch.randint(0, 10, (3, 4)))).square().mean()
    parameters = [*bag.parameters(), *head.parameters()]
    return parameters, step, torch.optim.SGD(parameters, lr=0.05)


@feature("sparse COO")
def coo():
    w = param(6, 4)

    def step(i):
        index = torch.tensor([[0, 2, 2, 5], [1, 0, 1, 3]])
        a = torch.sparse_coo_tensor(index, torch.randn(4), (6, 6)).coalesce()
        b = torch.sparse.mm(a, w)
        c = (a * 2 + a).to_dense()
        return b.square().mean() + (c @ w).sum() + torch.sparse.sum(a) * w.sum() + a.values().sum()
    return [w], step


@feature("sparse CSR")
def csr():
    w = param(6, 4)
    a = (torch.eye(6) * 2 + torch.ones(6, 6).tril(-4)).to_sparse_csr()

    def step(i):
        return (a @ w).square().mean() + a.values().sum() * w.mean() + a.to_dense().sum() * w.sum()
    return [w], step


@feature("nested tensors (jagged)")
def jagged():
    w = param(4, 4)

    def step(i):
        n = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=torch.jagged)
        y = (n @ w).sin() * 2
        return y.values().square().mean() + torch.nested.to_padded_tensor(y, 0.0).mean()
    return [w], step


@feature("nested tensors (strided)")
def nested():
    w = param(4, 4)

    def step(i):
        n = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
        y = torch.nested.to_padded_tensor(torch.relu(n) + n, 0.0)
        z = torch.nested.as_nested_tensor([torch.randn(2, 4) @ w, torch.randn(1, 4) @ w])
        return (y @ w).square().mean() + torch.nested.to_padded_tensor(z, 0.0).sum()
    return [w], step


@feature("quantised tensors")
def quantised():
    w = param(4, 4)

    def step(i):
        q = torch.quantize_per_tensor(w.detach(), 0.05, 2, torch.quint8)
        p = torch.quantize_per_channel(w.detach(), torch.full((4,), 0.1), torch.zeros(4, dtype=torch.long), 0, torch.qint8)
        fake = torch.fake_quantize_per_tensor_affine(w, 0.05, 0, -128, 127)
        return (q.dequantize() * w).sum() + (p.dequantize() @ fake).square().mean() + q.int_repr().float().mean()
    return [w], step


@feature("MKL-DNN tensors")
def mkldnn():
    w = param(4, 4)

    def step(i):
        with torch.no_grad():
            y = torch.relu(torch.randn(3, 4).to_mkldnn()).to_dense()
        return (y @ w).square().mean()
    return [w], step


@feature("meta tensors")
def meta():
    w = param(4, 4)

    def step(i):
        shape = (torch.empty(3, 4, device="meta") @ torch.empty(4, 7, device="meta")).shape
        return (torch.randn(shape[0], 4) @ w).square().mean() * shape[1]
    return [w], step


@feature("fake tensors")
def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode
    w = param(4, 4)

    def step(i):
        with FakeTensorMode(allow_non_fake_inputs=True):
            shape = (torch.randn(3, 4) @ torch.randn(4, 7)).relu().shape
        return (torch.randn(shape[0], 4) @ w).square().mean() * shape[1]
    return [w], step


class Named(torch.Tensor):
    """With __torch_function__ only."""
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@feature("tensor subclass with __torch_function__")
def torch_function():
    w = param(4, 4)

    def step(i):
        x = torch.randn(3, 4).as_subclass(Named)
        return ((x @ w).relu() + x.sum()).square().mean().as_subclass(torch.Tensor)
    return [w], step


class Wrapper(torch.Tensor):
    """With __torch_dispatch__: holds a tensor and its double."""
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        strip = lambda t: t.inner if isinstance(t, Wrapper) else t  # noqa: E731
        out = func(*torch.utils._pytree.tree_map(strip, args), **torch.utils._pytree.tree_map(strip, kwargs or {}))
        return torch.utils._pytree.tree_map(lambda t: Wrapper(t) if isinstance(t, torch.Tensor) else t, out)


@feature("tensor subclass with __torch_dispatch__")
def torch_dispatch():
    w = param(4, 4)

    def step(i):
        x = Wrapper(torch.randn(3, 4))
        y = (x @ Wrapper(w.detach())).relu() * 2
        return (y.inner * (torch.randn(3, 4) @ w)).square().mean()
    return [w], step


@feature("dispatch modes and function modes")
def dispatch_modes():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    w = param(4, 4)
    seen = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Function(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def step(i):
        with Dispatch(), Function():
            y = (torch.randn(3, 4) @ w).relu()
        return y.square().mean() + len(seen) * 0
    return [w], step
