"""Programs without an optimizer: which of their derivatives train something, and by what names.

A derivative is taken by leaves. It belongs to a training if these are all leaves of its graph, or if the others are trained in turn with
them (two players). Else it is an inner one: an adversarial example, a slope. What comes of it is found by the library (derivatives.h).
"""

from __future__ import annotations

import sys

from ..pytorch.names import is_plain, leaves_below, names_in_frames

_IN_VAIN = 3
_MOST_LANES = 64  # groups of leaves; a program with more takes its derivatives by something else than weights


class _Lane:
    """Leaves of these sizes and types, by which derivatives are taken again and again."""

    def __init__(self, number, key, rest):
        self.number, self.key, self.rest = number, key, rest
        self.names = None
        self.moves = False  # its updates put other tensors in place of these
        self.held = []  # (id, address) of each, as they were named last


def _key(tensors):
    return tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)


class ByHand:
    def __init__(self, program):
        self._program = program
        self._lanes = {}  # key -> _Lane
        self._names = set()
        self._of_models = _Lane(-1, (), ())
        self._memory = ()
        self.taken = False  # a derivative, and no pass has begun since
        self._in_vain = 0  # backward passes whose leaves were looked for, and trained nothing by hand

    def applies(self) -> bool:
        """Whether no optimizer has made an update, and the program is recorded."""
        if self._program.updates.made:
            self._memory = ()
        return not self._program.updates.made and self._program.tells_batch and len(self._lanes) < _MOST_LANES

    def derivative_taken(self, lane, weights) -> None:
        """The library knows it. Memory of a module's weights is kept until their update is known: its name says what the step has read."""
        self.taken = True
        self._memory = [weight.untyped_storage() for weight in weights] if lane is self._of_models else ()

    def may_have_updated(self) -> bool:
        """True once after a derivative: the program may have put other weights in the place of those."""
        taken, self.taken = self.taken, False
        return taken and self.applies()

    def leaves_of(self, roots) -> list:
        """What a backward pass from here gives gradients to. Not asked for long where a model or an optimizer has the weights."""
        if self._in_vain >= _IN_VAIN:
            return []
        self._in_vain += 1
        leaves = leaves_below(roots)
        if not self._program.saw_weights:  # a model whose calls were not seen, because its caller is compiled too
            self._program.name_models_again(leaves)
        return leaves

    def weights_of_models(self) -> list:
        """Parameters of the models that were called, also those that have no name yet."""
        return [it for root in self._program.paths.roots() for it in root.parameters() if it.requires_grad and is_plain(it)]

    def name_again(self, weights) -> None:
        """Weights of models that have other memory since the last call (p.data = …), or are other objects."""
        if any(self._program.numbers.of(weight) is None for weight in weights):
            for root in self._program.paths.roots():
                self._program.name_model(root, again=True)
        held = [(self._program.numbers.of(weight), weight.data_ptr()) for weight in weights]
        before, self._of_models.held = self._of_models.held, held
        if before and before != held:
            for weight, (known, _) in zip(weights, held):
                if known is not None and known[0] >= 0:
                    self._program.attached.ops.name_tensor("parameter", known[1], weight)
        self._memory = ()

    def lane_of(self, tensors, roots=()):
        """(lane, its tensors) of a derivative of `roots` by these tensors; None if it trains nothing."""
        known, tensors = tensors, [tensor for tensor in tensors if self._program.numbers.of(tensor) is None]
        if known and not tensors:
            return self._of_models, known
        if not tensors or not all(is_plain(tensor) and tensor.grad_fn is None for tensor in tensors):
            return None
        lane = self._lanes.get(key := _key(tensors))
        if lane is None:
            wanted = {id(tensor) for tensor in tensors}
            rest = _key([leaf for leaf in leaves_below(roots) if id(leaf) not in wanted])
            lane = self._lanes[key] = _Lane(len(self._lanes), key, rest)
        if not self._trains(lane):
            return None
        self._in_vain = 0
        self._name(lane, tensors)
        return lane, tensors

    def _trains(self, lane) -> bool:
        if not lane.rest:
            return True
        lanes = self._lanes.values()
        if any(not each.rest for each in lanes):
            return False
        others = {size for each in lanes if each is not lane for size in each.key}
        return all(size in others for size in lane.rest)

    def _name(self, lane, tensors) -> None:
        """Gives the tensors their names, once, and then whenever they are others."""
        ops = self._program.attached.ops
        held = [(id(tensor), tensor.data_ptr()) for tensor in tensors]
        if lane.names is None:
            lane.names = [self._free(name) for name in names_in_frames(tensors, sys._getframe(1))]
            for name, tensor in zip(lane.names, tensors):
                ops.name_parameter(name, tensor)
        elif held != lane.held:
            lane.moves = True
            for name, tensor in zip(lane.names, tensors):
                ops.name_tensor("parameter", name, tensor)
        lane.held = held
        self._program.saw_weights = True

    def _free(self, name):
        number, free = 2, name
        while free in self._names:
            free, number = f"{name} ({number})", number + 1
        self._names.add(free)
        return free
