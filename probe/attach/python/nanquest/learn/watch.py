"""What is known of the updates of one optimizer. Weights are known by their places: no reference to one is kept."""

from __future__ import annotations

import weakref

import torch

from ..pytorch.optimizers import parameters_of
from ..pytorch.values import contents, largest, plain_part

NARROW = (torch.float16, torch.bfloat16)


class Watch:
    def __init__(self, ops, optimizer):
        self._ops = ops
        self.optimizer = weakref.ref(optimizer)
        parameters = parameters_of(optimizer)
        self.size = len(parameters)
        self.made = 0  # updates begun
        self.without = [i for i, p in enumerate(parameters) if p.requires_grad]  # had no gradient at any update
        self.zeros = None  # places whose gradient held zeros only at every look; None before the first look
        self.start = {}  # place -> contents before the first update
        self.rates = []  # at the last look
        self.last_step = -2  # number of the step with the last update that not_cleared has looked at
        self.used = {}  # place -> contents of gradients that it used, until the next backward pass
        self.stays = False  # whether those gradients were the same when that pass began
        self.carried = 0  # updates in a row whose gradients contain those of the update before
        self.unmoved = []  # places that an update in fp32 would move, and that had not changed before the current one
        self._keep(i for i, p in enumerate(parameters) if p.requires_grad and p.dtype in NARROW)

    def _keep(self, places) -> None:
        """What these weights hold is to be compared later."""
        parameters = parameters_of(self.optimizer())
        for place in places:
            if place not in self.start and (part := plain_part(parameters[place])) is not None:
                self.start[place] = contents(self._ops, part)

    def keep_those_without(self) -> None:
        self._keep(self.without)

    def is_of(self, optimizer) -> bool:
        return self.optimizer() is optimizer and sum(len(group["params"]) for group in optimizer.param_groups) == self.size

    def unchanged(self, place: int, parameter) -> bool:
        """Whether the weight is as it was at the beginning, as far as that was kept."""
        part = plain_part(parameter)
        return part is not None and self.start.get(place) == contents(self._ops, part)

    def note_gradients(self, parameters) -> None:
        """At every update, until all weights have had a gradient."""
        self.without = [i for i in self.without if parameters[i].requires_grad and parameters[i].grad is None]

    def look_at_zeros(self, parameters) -> None:
        places = range(len(parameters)) if self.zeros is None else self.zeros
        found = [(i, part) for i in places if (part := plain_part(parameters[i].grad)) is not None]
        self.zeros = [i for (i, _), size in zip(found, largest(self._ops, [part for _, part in found])) if size == 0]
