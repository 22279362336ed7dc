"""Operators of a compiler's graph that call functions of the program (flex attention's score and mask), as a graph of plain operators.

PyTorch itself defines what they compute, in plain operators over all scores. That is traced with the shapes that the node was
compiled for, so that replay can run it without Python.
"""

from __future__ import annotations

import contextlib

import torch

from ..pytorch import private


def _scattered(shape, indices, values):
    return values.new_zeros(shape).index_put(indices, values, accumulate=True)


def _dense(target):
    """PyTorch's own plain form of this operator; None if there is none."""
    if private.HigherOrderOperator is None or not isinstance(target, private.HigherOrderOperator):
        return None
    known = private.plain_attention.get(target.name())
    return known.find() if known is not None else None


@contextlib.contextmanager
def _constants_allowed():
    """Tensors that the traced function makes of numbers become constants of the graph."""
    here = private.fake_tensor_tls
    before, here.allow_non_fake_inputs_override = here.allow_non_fake_inputs_override, True
    try:
        yield
    finally:
        here.allow_non_fake_inputs_override = before


def graph_of(node):
    """(graph module, nodes whose values are its inputs, in order) for a node that calls functions; None if unknown."""
    dense = _dense(node.target)
    if dense is None:
        return None
    owner, given = node.graph.owning_module, []

    def function_of(argument):
        value = owner
        for part in argument.target.split("."):
            value = getattr(value, part)
        return value

    def place(argument):
        if argument.op == "get_attr" and "val" not in argument.meta:
            return function_of(argument)
        given.append(argument)
        return argument

    arguments = torch.fx.node.map_arg((node.args, dict(node.kwargs)), place)
    from torch.fx.experimental.proxy_tensor import make_fx

    def run(*values):
        at = dict(zip(given, values))
        args, kwargs = private.tree_map(lambda value: at.get(value, value) if isinstance(value, torch.fx.Node) else value, arguments)
        return dense(*args, **kwargs)

    values = [argument.meta["val"] for argument in given]
    mode = next((v.fake_mode for v in values if isinstance(v, private.FakeTensor)), None)
    if mode is None:
        return None
    scatter = getattr(getattr(torch.ops, "flex_lib", None), "zeros_and_scatter", None)  # written in Python
    with mode, _constants_allowed():
        graph_module = make_fx(run, {scatter.default: _scattered} if scatter is not None else None)(*values)
    _let_results_be(graph_module.graph)
    return graph_module, given


def _let_results_be(graph) -> None:
    """Removes copies into new memory that only change strides: new memory is uninitialised and may hold NaN."""
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.copy_.default:
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
    graph.eliminate_dead_code()
