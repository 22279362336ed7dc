"""The graph of a compiled region as text (JSON), from which replay runs its operators one by one, without Python.

    {"inputs": ["tensor", "int", ...],            values 0, 1, ... are what the region is called with
     "modules": [["blocks.0", "Linear"], ...], "stacks": [["model.py:12 forward", ...], ...],
     "nodes": [{"op": "aten::add", "overload": "Tensor", "arguments": [...], "module": 0, "stack": 3}, ...],
     "outputs": [reference or null, ...], "draws": true}

A node with "derivative": true belongs to the backward pass of another node, not to the forward pass that is recomputed there. A node
that ran on a device has "results", one entry each: {"dtype": "float16", "sizes": [4, null]} (null: known only when it runs), a
number, or null. They are needed if there is no kernel for it where the graph is run. Each result of a node is the next value. There
is one argument for each argument of the operator's schema. An argument is a number, text, true, false, null, a list of arguments, or
an object: {"value": 7} (with "item" if the node has several results), {"number": "inf"}, {"dtype": "float16"}, {"device": "cpu"},
{"layout": "strided"}, {"memory_format": "channels_last"}, {"tensor": ...} for a small constant. A graph that can't be written in this
form is {"refused": why}.

It is the graph that the compiler was given, after autograd and decompositions: forward and backward are two graphs, whose inputs and
outputs are those of the compiled code. Operators of the compiler's own are written as what they compute. "draws" means that some of
them draw random numbers in kernels; these can't be drawn again.
"""

from __future__ import annotations

import json
import math
import operator
import re

import torch

from ..pytorch import private
from . import plain_operators

SMALL = 4096  # largest number of elements of a constant that is written
ARITHMETIC = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.floordiv: "floordiv",
    operator.mod: "mod",
    operator.truediv: "truediv",
    operator.neg: "neg",
    torch.sym_float: "float",
    torch.sym_max: "max",
    torch.sym_min: "min",
}  # of sizes


class Refused(Exception):
    pass


def _number(value: float):
    return value if math.isfinite(value) else {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _constant(tensor):
    if (
        type(tensor) is not torch.Tensor
        and not isinstance(tensor, torch.nn.Parameter)
        or tensor.numel() > SMALL
        or tensor.dtype.is_complex
        or tensor.layout != torch.strided
    ):
        raise Refused(f"a constant of type {type(tensor).__name__} and shape {tuple(tensor.shape)} is part of its graph")
    with private.without_modes():  # graphs may be written while PyTorch computes with shapes only
        values = tensor.detach().cpu().reshape(-1).tolist()
    return {
        "tensor": {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": str(tensor.device),
            "shape": list(tensor.shape),
            "values": [_number(v) if isinstance(v, float) else v for v in values],
        }
    }


# What the compiler's own operators compute, as operators of ATen: name -> (operator, arguments) from the node's arguments.
def _random(size, _seed, mode, offset=0, **_):
    aten = torch.ops.aten
    return (aten.rand if mode == "rand" else aten.randn).default, (size,), {"dtype": torch.float32}


def _iota(length, *, start, step, dtype, device, requires_grad=False):
    if isinstance(length, torch.fx.Node):
        raise Refused("prims::iota of a length that is known only when it runs")
    return torch.ops.aten.arange.start_step, (start, start + length * step, step), {"dtype": dtype, "device": device}


REPLACED = {
    "prims::convert_element_type": lambda x, dtype: (torch.ops.aten._to_copy.default, (x,), {"dtype": dtype}),
    "prims::device_put": lambda x, device, non_blocking=False: (torch.ops.aten._to_copy.default, (x,), {"device": device}),
    "prims::view_of": lambda x: (torch.ops.aten.alias.default, (x,), {}),
    "prims::fma": lambda a, b, c: (torch.ops.aten.addcmul.default, (c, a, b), {}),
    "prims::iota": _iota,
    "prims::inductor_random": _random,
    "prims::inductor_force_stride_order": lambda x, stride: (torch.ops.aten.alias.default, (x,), {}),
}
SEEDS = {"prims::inductor_seeds", "prims::inductor_seed", "prims::inductor_lookup_seed"}  # only _random reads them
DRAWS = {"prims::inductor_random", "prims::inductor_randint"}


def _drops(target, args, kwargs) -> bool:
    """Whether a fused attention applies dropout inside its kernel."""
    names = [argument.name for argument in target._schema.arguments]
    if not target.name().startswith("aten::_scaled_dot_product") or "dropout_p" not in names:
        return False
    given = {**dict(zip(names, args)), **kwargs}
    return given.get("dropout_p", 0.0) != 0


class _Teller:
    def __init__(self, graph_module):
        self.module = graph_module
        self.values = {}  # node -> number of its value
        self.stands_for = {}  # node -> reference, or references to its results, if other nodes compute it
        self.within = None  # position of the node whose plain form is written
        self.count = 0
        self.inputs, self.nodes, self.outputs = [], [], []
        self.modules, self.stacks = {}, {}
        self.draws = False

    def tell(self) -> dict:
        for node in self.module.graph.nodes:
            getattr(self, "_" + node.op)(node)
        return {
            "inputs": self.inputs,
            "modules": [list(m) for m in self.modules],
            "stacks": [list(s) for s in self.stacks],
            "nodes": self.nodes,
            "outputs": self.outputs,
            "draws": self.draws,
        }

    def _name(self, node) -> None:
        self.values[node], self.count = self.count, self.count + 1

    def _placeholder(self, node) -> None:
        self.inputs.append("tensor" if isinstance(node.meta.get("val"), torch.Tensor) else "int")
        self._name(node)

    def _get_attr(self, node) -> None:
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.nn.Module):  # a branch of torch.cond, a score_mod: the node that calls it is refused
            return
        self.nodes.append({"op": "constant", "arguments": [_constant(value)]})
        self._name(node)

    def _call_module(self, node) -> None:
        raise Refused(f"it calls the module {node.target}")

    def _call_method(self, node) -> None:
        raise Refused(f"it calls the method {node.target}")

    def _output(self, node) -> None:
        results = node.args[0]
        self.outputs = [self._argument(result) if isinstance(result, torch.fx.Node) else None for result in results]

    def _call_function(self, node) -> None:
        target, args, kwargs = node.target, node.args, dict(node.kwargs)
        if target is operator.getitem:  # a reference to one of several results
            if isinstance(several := self.stands_for.get(args[0]), list):
                self.stands_for[node] = several[args[1]]
            return
        told = {}
        if target in ARITHMETIC:
            told = {"op": "sizes::" + ARITHMETIC[target], "arguments": [self._argument(a) for a in args]}
        elif isinstance(target, private.OpOverload):
            name = target.name().split(".")[0]
            if name in SEEDS:
                return
            self.draws = self.draws or name in DRAWS or _drops(target, args, kwargs)
            if name in REPLACED:
                target, args, kwargs = REPLACED[name](*args, **kwargs)
            told = self._operator(target, args, kwargs)
        elif (plain := plain_operators.graph_of(node)) is not None:
            self._in_plain_form(node, *plain)
            return
        else:
            raise Refused(f"it calls {getattr(target, '__name__', target)}, which is no operator")
        told.update(self._place(node))
        if results := _on_device(node.meta.get("val")):
            told["results"] = results
        self.nodes.append(told)
        self._name(node)

    def _in_plain_form(self, node, graph_module, given) -> None:
        """Writes the nodes of a graph in place of this one."""
        outer, self.module, self.within = self.module, graph_module, self._place(node)
        given = iter(given)
        for inner in graph_module.graph.nodes:
            if inner.op == "placeholder":
                self.stands_for[inner] = self._argument(next(given))
            elif inner.op == "output":
                self.stands_for[node] = self._argument(inner.args[0])
            else:
                getattr(self, "_" + inner.op)(inner)
        self.module, self.within = outer, None

    def _operator(self, target, args, kwargs) -> dict:
        schema = target._schema
        arguments = []
        for at, argument in enumerate(schema.arguments):
            if argument.kwarg_only or at >= len(args):
                given = argument.name in kwargs
                value = kwargs[argument.name] if given else argument.default_value if argument.has_default_value() else None
                arguments.append(self._argument(value) if given or argument.has_default_value() else None)
            else:
                arguments.append(self._argument(args[at]))
        return {"op": schema.name, "overload": schema.overload_name, "arguments": arguments}

    def _argument(self, value):
        if isinstance(value, torch.fx.Node):
            if value in self.stands_for:
                return self.stands_for[value]
            if value.op == "call_function" and value.target is operator.getitem:
                return {"value": self._value(value.args[0]), "item": value.args[1]}
            return {"value": self._value(value)}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return _number(value)
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self._argument(each) for each in value]
        raise Refused(f"an argument of type {type(value).__name__} is part of its graph")

    def _value(self, node) -> int:
        if node not in self.values:
            raise Refused(f"{node.name} can't be told")
        return self.values[node]

    def _place(self, node) -> dict:
        if self.within is not None:
            return self.within
        place = {}
        nested = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        if nested:
            path, kind = list(nested.values())[-1][:2]
            kind = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
            place["module"] = self.modules.setdefault((_path(path), kind.rsplit(".", 1)[-1]), len(self.modules))
        if node.meta.get("partitioner_tag") == "is_backward":
            place["derivative"] = True
        frames = tuple(
            f"{file}:{line} {function}"
            for file, line, function in reversed(re.findall(r'File "([^"\n]*)", line (\d+), in ([^\n]*)', node.stack_trace or ""))
        )
        if frames:
            place["stack"] = self.stacks.setdefault(frames, len(self.stacks))
        return place


def _on_device(value) -> list:
    """What is written about a node's results, if one of them is on a device."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if all(v.device.type == "cpu" for v in values if isinstance(v, torch.Tensor)):
        return []
    return [
        {"dtype": str(v.dtype).removeprefix("torch."), "sizes": [s if isinstance(s, int) else None for s in v.shape]}
        if isinstance(v, torch.Tensor)
        else v
        if isinstance(v, int)
        else None
        for v in values
    ]


def _path(told: str) -> str:
    """The path below the module that was compiled: "blocks.0.fc" of "L['self']._modules['blocks'][0].fc"."""
    told = re.sub(r"^[LG]\[['\"][^'\"]*['\"]\]", "", told)
    told = re.sub(r"\.(?:_modules|__dict__)(?=\[)", "", told)
    told = re.sub(r"\[['\"]?([^'\"\]]*)['\"]?\]", r".\1", told)
    return told.replace("._orig_mod", "").strip(".")


def told(graph_module) -> str:
    """The graph as JSON. Never raises: a graph that can't be written is refused, with the reason."""
    try:
        graph = _Teller(graph_module).tell()
    except Refused as reason:
        graph = {"refused": str(reason)}
    except Exception as error:  # noqa: BLE001 (another torch's graph)
        graph = {"refused": f"{type(error).__name__}: {str(error)[:200]}"}
    return json.dumps(graph, separators=(",", ":"))
