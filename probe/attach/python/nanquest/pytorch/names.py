"""Names of what a training program holds: modules, parameters, buffers, inputs."""

from __future__ import annotations

import gc
import inspect
import weakref

import torch

from . import private

# Wrappers of a model that are not part of it, and the attribute in which each keeps the model.
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod", "DeepSpeedEngine": "module"}


def unwrap(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside DistributedDataParallel, torch.compile and the like."""
    while (inner := _WRAPPERS.get(type(module).__name__)) and isinstance(getattr(module, inner, None), torch.nn.Module):
        module = getattr(module, inner)
    return module


def living(base, objects=None) -> list:
    """All objects of a class. Goes through all Python objects (or through `objects`), so only for rare occasions."""
    objects = gc.get_objects() if objects is None else objects
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, base)}  # isinstance would run code of proxy objects
    return [it for it in objects if type(it) in kinds]


def living_modules() -> list:
    """All modules of this process. For rare occasions."""
    return [it for it in living(torch.nn.Module) if "_modules" in it.__dict__]


def living_optimizers(objects=None) -> list:
    """All optimizers of this process that hold weights themselves, not through an inner optimizer. For rare occasions."""
    return [it for it in living(torch.optim.Optimizer, objects) if "param_groups" in it.__dict__]


def models_with(parameters) -> list:
    """Models of this process, not parts of others, that hold any of these parameters (ids). For rare occasions."""
    modules = living_modules()
    parts = {id(part) for module in modules for part in module._modules.values()}
    return [module for module in modules if id(module) not in parts and any(id(p) in parameters for p in module.parameters())]


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_strided, _is_wrapped = torch.strided, private.is_wrapped


def is_plain(tensor) -> bool:
    """Whether the library may read it: an ordinary tensor with memory, not a subclass with other semantics."""
    return (
        type(tensor) in _PLAIN and tensor.layout is _strided and not tensor.is_meta and not tensor.is_quantized and not _is_wrapped(tensor)
    )


class Witnesses:
    """Which models train, without checking all their parameters at every forward pass: one that was found to train before is checked
    first."""

    def __init__(self):
        self._known = {}  # id of a root -> (weak reference to it, names of modules down to the holder, key)

    def trains(self, root) -> bool:
        """Whether any parameter below `root` requires a gradient."""
        entry = self._known.get(id(root))
        if entry is not None and entry[0]() is root and self._stands(root, entry[1], entry[2]):
            return True
        for name, parameter in root.named_parameters():
            if parameter.requires_grad:
                *path, key = name.split(".")
                self._known = {ident: entry for ident, entry in self._known.items() if entry[0]() is not None}
                self._known[id(root)] = (weakref.ref(root), path, key)
                return True
        self._known.pop(id(root), None)
        return False

    @staticmethod
    def _stands(module, path, key) -> bool:
        try:
            for name in path:
                module = module._modules[name]
            return held_by(module._parameters, key).requires_grad
        except (KeyError, AttributeError, RuntimeError):  # it was freed, or is None; a scripted module's are no dict
            return False


def held_by(members, key):
    """What a module's _parameters or _buffers hold under `key`, or None. Those of a scripted module are no dict. Those of DeepSpeed
    gather what is asked for from all ranks, unless they are accessed as a plain dict."""
    if isinstance(members, dict):
        return dict.get(members, key)
    return members[key] if key in members else None


class ModulePaths:
    """The path of every module, from the root it was first seen under."""

    def __init__(self):
        self.known = {}  # id -> (weak reference, (path, type) as bytes)
        self._roots = []  # (weak reference to a model, prefix of its names), in the order they were seen

    def of(self, module):
        """(path, type) as bytes, or None if the module belongs to no root seen so far."""
        entry = self.known.get(id(module))
        return entry[1] if entry is not None and entry[0]() is module else None

    def add_root(self, root) -> str:
        """Learns the paths below `root`; returns the prefix of its names ("" for the first model)."""
        prefix = next((prefix for seen, prefix in self._roots if seen() is root), None)
        if prefix is None:
            self._forget_dead()
            prefix = self._free_prefix(root)
            self._roots.append((weakref.ref(root), prefix))
        for name, module in root.named_modules():
            path = (prefix + name).rstrip(".") or type(root).__name__
            self.known[id(module)] = (weakref.ref(module), (path.encode(), type(module).__name__.encode()))
        return prefix

    def roots(self) -> list:
        return [root for root in (seen() for seen, _ in self._roots) if root is not None]

    def is_root(self, module) -> bool:
        return any(seen() is module for seen, _ in self._roots)

    def _forget_dead(self) -> None:
        self._roots = [entry for entry in self._roots if entry[0]() is not None]
        self.known = {ident: entry for ident, entry in self.known.items() if entry[0]() is not None}

    def _free_prefix(self, root) -> str:
        """Names of a second model begin with its class, so that two models' names differ. A model that is rebuilt after the first was
        deleted gets the first one's names."""
        taken = {prefix for _, prefix in self._roots}
        if "" not in taken:
            return ""
        name, number = type(root).__name__, 2
        prefix = name + "."
        while prefix in taken:
            prefix, number = f"{name}{number}.", number + 1
        return prefix


class ParameterNumbers:
    """The library's numbers for parameters. No reference is kept to a tensor, not even a weak one, which
    torch.utils.swap_tensors would refuse: a parameter is identified by its holder and key."""

    def __init__(self):
        self._known = {}  # id -> (weak reference to the holder, key, number, name)

    def know(self, parameter, name, number, holder, key) -> None:
        self._known[id(parameter)] = (weakref.ref(holder), key, number, name)

    def of(self, parameter):
        """(number, name), or None if it is not known."""
        entry = self._known.get(id(parameter))
        if entry is None or self._held(entry[0](), entry[1]) is not parameter:
            return None
        return entry[2:]

    def names_but(self, parameters) -> list:
        """Names of all parameters that are held somewhere, except these (ids)."""
        return [
            name
            for ident, (holder, key, _, name) in self._known.items()
            if ident not in parameters and id(self._held(holder(), key)) == ident
        ]

    @staticmethod
    def _held(holder, key):
        if isinstance(holder, torch.nn.Module):
            return held_by(holder._parameters, key)
        if isinstance(holder, torch.optim.Optimizer):
            try:
                return holder.param_groups[key[0]]["params"][key[1]]
            except IndexError:
                return None
        if holder is not None and len(held := getattr(holder, key[0], ())) > key[1]:  # DeepSpeed's optimizers aren't PyTorch's
            return held[key[1]]
        return None


_MOST_NODES = 100_000  # nodes of a graph that are searched for leaves
_MOST_VALUES = 50_000  # of a program's variables


def leaves_below(roots):
    """The leaves that a backward pass from these tensors gives gradients to, in the order in which they are found."""
    leaves, seen = {}, set()
    open_ = [root.grad_fn for root in roots if isinstance(root, torch.Tensor) and root.grad_fn is not None]
    while open_ and len(seen) < _MOST_NODES:
        node = open_.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)  # of AccumulateGrad
        if isinstance(leaf, torch.Tensor):
            leaves.setdefault(id(leaf), leaf)
        open_.extend(next_node for next_node, _ in reversed(node.next_functions))
    return list(leaves.values())


def names_in_frames(tensors, frame):
    """The program's names for these tensors: a variable of a frame from `frame` outwards, or an element of a list, tuple or dictionary
    there; "leaf 0" if there is none."""
    names, room = {}, [_MOST_VALUES]
    wanted = {id(tensor) for tensor in tensors}
    while frame is not None and len(names) < len(wanted):
        if not frame.f_globals.get("__name__", "").startswith(("torch.", "nanquest.")):
            for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                for path, tensor in _tensors_of(name, value, room):
                    if id(tensor) in wanted:
                        names.setdefault(id(tensor), path)
        frame = frame.f_back
    return [names.get(id(tensor), f"leaf {i}") for i, tensor in enumerate(tensors)]


def _tensors_of(name, value, room, depth=0):
    """Also those inside `value`, as long as there is room: `room[0]` is how many values may still be looked at."""
    room[0] -= 1
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth > 2 or room[0] < 0:
        return
    elif type(value) in (list, tuple) and len(value) <= 1000:
        for i, each in enumerate(value):
            yield from _tensors_of(f"{name}[{i}]", each, room, depth + 1)
    elif type(value) is dict and len(value) <= 1000 and name != "__builtins__":
        for key, each in list(value.items()):
            yield from _tensors_of(f"{name}[{key!r}]", each, room, depth + 1)
    elif type(value).__module__ == "__main__" and type(getattr(value, "__dict__", None)) is dict:  # an object of the program's own
        for key, each in list(value.__dict__.items()):
            yield from _tensors_of(f"{name}.{key}", each, room, depth + 1)


class ArgumentNames:
    """Names for the tensors that a model is called with, by its forward's signature."""

    def __init__(self):
        self._signatures = {}

    def of(self, module, args, kwargs):
        """(name, tensor) of every plain tensor that no differentiable operation computed: data of the loader, or what the program wants
        gradients of."""
        names = self._signatures.get(type(module))
        if names is None:
            try:
                names = [
                    p.name
                    for p in inspect.signature(type(module).forward).parameters.values()
                    if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                ][1:]
            except (TypeError, ValueError, AttributeError):  # scripted modules have no Python function
                names = []
            self._signatures[type(module)] = names
        for i, value in enumerate(args):
            yield from _tensors_in(names[i] if i < len(names) else f"arg{i}", value)
        for name, value in kwargs.items():
            yield from _tensors_in(name, value)


def _tensors_in(name, value, depth=0):
    if isinstance(value, torch.Tensor):
        leaf = value.grad_fn is None and not (value.requires_grad and isinstance(value, torch.nn.Parameter))
        if leaf and is_plain(value):
            yield name, value
    elif depth < 3 and isinstance(value, dict):
        for key, inner in value.items():
            yield from _tensors_in(f"{name}.{str(key).replace(chr(47), chr(95))}", inner, depth + 1)
    elif depth < 3 and isinstance(value, (tuple, list)):
        for i, inner in enumerate(value):
            yield from _tensors_in(f"{name}.{i}", inner, depth + 1)
