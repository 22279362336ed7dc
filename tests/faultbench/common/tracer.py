"""A dispatch tracer of faultbench's own: what every op read and wrote, and where bad values were first seen."""

from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

UNWRITTEN = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
WRITE_ONLY = ("fill_", "zero_", "copy_", "normal_", "uniform_", "zero", "fill", "_foreach_zero_")
VIEWS = ("view", "transpose", "t", "permute", "select", "slice", "expand", "unsqueeze", "squeeze", "alias", "detach",
         "_reshape_alias", "as_strided", "unbind", "split", "chunk")


@dataclass
class Event:
    """One dispatched op of the step."""

    op: str
    phase: str
    module: str
    bad_in: bool
    nan_in: bool
    bad_out: bool
    nan_out: bool
    value: str
    outside: tuple = ()    # (origin, name) of bad values that this step did not make
    setting: bool = False  # a scalar argument is itself bad
    fresh: bool = False    # uninitialised memory with bad values
    changed: bool = False  # what it reads is no longer what was written


def tensors(tree):
    return [t for t in tree_flatten(tree)[0] if isinstance(t, torch.Tensor)]


def bad(t):
    return t.is_floating_point() and t.numel() > 0 and not bool(torch.isfinite(t).all())


def word(ts):
    """What the non-finite values are: nan, +inf, -inf or mixed."""
    kinds = set()
    for t in ts:
        if t.is_floating_point():
            kinds |= {"nan"} if bool(t.isnan().any()) else set()
            kinds |= {"+inf"} if bool((t == float("inf")).any()) else set()
            kinds |= {"-inf"} if bool((t == float("-inf")).any()) else set()
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""


def key(t):
    return t.untyped_storage()._cdata


def bits(t):
    """A checksum of the tensor's storage, whatever its values."""
    raw = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
    return hash(raw.numpy().tobytes())


class Tracer(TorchDispatchMode):
    def __init__(self, loop, memory=False):
        super().__init__()
        self.memory = memory  # compare memory at each read with what was last seen there (slow)
        self.loop, self.events, self.stack, self.made = loop, [], [], {}
        self.seen, self.modules, self.keep = {}, {}, []
        self.outside = {}
        for name, p in loop.net.named_parameters():
            self.outside[key(p)] = ("parameter", name)
            if p.grad is not None:
                self.outside[key(p.grad)] = ("gradient", name)
                self.keep.append(p.grad)  # zero_grad frees it, and its key would be another's
        for name, b in loop.net.named_buffers():
            self.outside[key(b)] = ("buffer", name)
        for state in loop.optimizer.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    self.outside[key(value)] = ("optimizer_state", name)
        if getattr(loop.scaler, "_scale", None) is not None:
            self.outside[key(loop.scaler._scale)] = ("loss_scale", "scale")
        for batch in loop.dataset.values():
            for name, value in batch.items():
                if isinstance(value, torch.Tensor):
                    self.outside[key(value)] = ("input", name)
        self.hooks = []
        for name, module in loop.net.named_modules():
            self.hooks.append(module.register_forward_pre_hook(lambda m, a, name=name: self.stack.append(name)))
            self.hooks.append(module.register_forward_hook(lambda m, a, o: (self.stack.pop(), None)[1]))

    def close(self):
        for hook in self.hooks:
            hook.remove()

    def where(self):
        """Phase and module: a backward op belongs to the module of its forward op."""
        node = torch._C._current_autograd_node()
        if node is not None:
            return "backward", self.modules.get(node._sequence_nr(), "")
        module = self.stack[-1] if self.stack else ""
        if self.loop.region == "forward":
            self.modules[torch.autograd._get_sequence_nr() - 1] = module
        return self.loop.region, module

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        op = function._schema.name.split("::")[1]
        phase, module = self.where()
        inputs = tensors((args, kwargs))
        read = inputs[1:] if op in WRITE_ONLY else inputs
        foreign = tuple(self.outside.get(key(t), ("outside", "")) for t in read if bad(t) and key(t) not in self.made and op not in VIEWS)
        changed = self.memory and any(key(t) in self.seen and self.seen[key(t)] != bits(t) for t in read)
        scalars = [s for s in tree_flatten((args, kwargs))[0] if isinstance(s, (int, float)) and not isinstance(s, bool)]
        setting = any(s != s or abs(s) >= 1e4 or s == 0.0 and op == "div" for s in scalars if isinstance(s, float))
        bad_in, nan_in = any(bad(t) for t in read), any(bool(t.isnan().any()) for t in read if t.is_floating_point())
        result = function(*args, **kwargs)
        written = tensors(result)
        if function._schema.is_mutable:
            written = written + [t for t in inputs if True]
        bad_out = any(bad(t) for t in written) and op not in UNWRITTEN
        nan_out = bad_out and any(bool(t.isnan().any()) for t in written if t.is_floating_point())
        for t in tensors(result):
            if key(t) not in self.outside:
                self.made[key(t)] = True
        for t in inputs + tensors(result) if self.memory else ():
            self.seen[key(t)] = bits(t)
        self.keep.append((inputs, result))  # storages stay alive, so that their keys stay theirs
        fresh = op in UNWRITTEN and any(bad(t) for t in written)
        value = word(written) if bad_out or fresh else ""
        self.events.append(Event(op, phase, module, bad_in, nan_in, bad_out, nan_out, value, foreign, setting, fresh, changed))
        return result
