"""Weights and state of optimizers, with the library's numbers and names."""

from __future__ import annotations

import itertools
import weakref

import torch

from ..pytorch.names import is_plain
from ..pytorch.optimizers import settings_of
from ..pytorch.shards import any_sharded, own_part, part_with_gradient, renew_gradient


class _Weights:
    """The weights of one optimizer, and the library's numbers for those that it can look at."""

    def __init__(self, optimizer, parameters, ids, numbers, names, place):
        self.optimizer = weakref.ref(optimizer)
        self.ids, self.names = ids, names
        self.place = place  # among the optimizers of the program: 0, 1, …
        self.replicas = None  # replicas.Replicas' own: modules whose weights these are
        self.state = None  # its state when it was named
        self._settings = None  # in its last update
        self._began = False
        self._seen = [number >= 0 for number in numbers]
        self._all_seen = all(self._seen)
        self._sharded = any_sharded(parameters)
        own = -2 - id(optimizer) % (1 << 62)
        # An optimizer without such weights must still be distinguished from the next one.
        self.numbers = [number for number in numbers if number >= 0] or [own]

    def other_settings(self, optimizer):
        """Its settings if a number among them is another than in its last update, or this is its first; else None."""
        settings = settings_of(optimizer)
        before, self._settings = self._settings, settings
        return settings if settings != before else None

    def first_update(self) -> bool:
        """True once, at the first update."""
        began, self._began = self._began, True
        return not began

    def tensors(self, parameters):
        seen = self._seen_of(parameters)
        return [*map(part_with_gradient, seen)] if self._sharded else seen

    def renew(self, parameters, tensors) -> None:
        """A closure has computed gradients since `tensors` were given to the library."""
        if self._sharded:
            for parameter, part in zip(self._seen_of(parameters), tensors):
                renew_gradient(parameter, part)

    def _seen_of(self, parameters):
        return parameters if self._all_seen else [p for p, seen in zip(parameters, self._seen) if seen]


class Written:
    """The weights of every optimizer that was seen."""

    def __init__(self, program):
        self._program = program
        self._weights = {}  # id of an optimizer -> _Weights
        self._places, self._count = weakref.WeakKeyDictionary(), itertools.count()

    def numbered(self, parameters):
        """(tensors, numbers) for the library: those that it knows."""
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        known = [(p, self._program.numbers.of(p)) for p in parameters if isinstance(p, torch.Tensor)]
        known = [(p, entry[0]) for p, entry in known if entry is not None and entry[0] >= 0]
        return [part_with_gradient(p) for p, _ in known], [number for _, number in known]

    def of(self, optimizer):
        """(parameters of an optimizer, _Weights)."""
        groups = optimizer.param_groups
        parameters = groups[0]["params"] if len(groups) == 1 else [p for group in groups for p in group["params"]]
        ids = [*map(id, parameters)]
        weights = self._weights.get(id(optimizer))
        if weights is None or weights.ids != ids or weights.optimizer() is not optimizer:
            self._weights = {key: kept for key, kept in self._weights.items() if kept.optimizer() is not None}
            weights = self._weights[id(optimizer)] = self._number(optimizer, ids)
        return parameters, weights

    def _number(self, optimizer, ids) -> _Weights:
        numbers = self._program.numbers
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if any(numbers.of(p) is None for p in parameters):
            self._program.name_models_again(parameters)
        found = []
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if numbers.of(parameter) is None:
                    self._program.name_parameter(f"group{g}.{i}", parameter, optimizer, (g, i))
                found.append(numbers.of(parameter) or (-1, ""))
        if (place := self._places.get(optimizer)) is None:
            place = self._places[optimizer] = next(self._count)
        return _Weights(optimizer, parameters, ids, [number for number, _ in found], [name for _, name in found], place)

    def optimizers(self) -> list:
        """Optimizers that have made an update."""
        known = (weights.optimizer() for weights in self._weights.values())
        return [optimizer for optimizer in known if optimizer is not None]

    def writes(self, parameter) -> bool:
        """Whether one of them holds it."""
        return any(id(parameter) in weights.ids for weights in self._weights.values() if weights.optimizer() is not None)

    def name_states_again(self) -> None:
        """Their weights are looked up again at the next update."""
        for weights in self._weights.values():
            weights.state = None

    def name_states(self, attachment, optimizer) -> None:
        """Names the tensors of its state, and again whenever there are others."""
        states = optimizer.state
        first = next(iter(states.values()), None)
        if not isinstance(first, dict):
            return
        look = [len(states)]
        for value in first.values():
            if isinstance(value, torch.Tensor):
                look.append(id(value))
        weights = self._weights.get(id(optimizer))
        if weights is not None and weights.state == look and weights.optimizer() is optimizer:
            return
        parameters, weights = self.of(optimizer)
        weights.state = look
        for parameter, name in zip(parameters, weights.names):
            state = optimizer.state.get(parameter)
            if not name or not isinstance(state, dict):
                continue
            for key, value in state.items():
                value = own_part(value)
                if isinstance(value, torch.Tensor) and is_plain(value):
                    attachment.ops.name_tensor("state", f"{key}.{name}", value)
