"""Updates that a 16-bit format swallows: smaller than half a unit of the weight, so that the weight stays as it is."""

from __future__ import annotations

import statistics

from ..base.probe_state import probe
from ..pytorch.optimizers import parameters_of, rates_of
from ..pytorch.values import largest, plain_part
from .no_gradient import weights
from .trial import can_try, in_fp32

LEAST_MOVED = 0.5  # share of a weight's values with a gradient that must move in fp32
RISES = 1.02  # a rate that grew by this factor since the last look is still in its warm-up
ROUNDING = 1 / 16  # of the gradient of the weight beside it


class Swallowed:
    def __init__(self, attachment, say):
        self._attachment, self._say = attachment, say

    def before_update(self, watch, program) -> None:
        """Weights that have not changed since the start although they have a gradient and a rate, and that would change in fp32."""
        optimizer = watch.optimizer()
        watch.unmoved = []
        if not watch.start or not can_try(optimizer):
            return
        parameters = parameters_of(optimizer)
        groups = [group for group in optimizer.param_groups for _ in group["params"]]
        rates = [rate for rate, group in zip(rates_of(optimizer), optimizer.param_groups) for _ in group["params"]]
        last = [rate for rate, group in zip(watch.rates, optimizer.param_groups) for _ in group["params"]]
        judged = [i for i in watch.start if 0 < rates[i] <= RISES * (last[i] if i < len(last) else 0.0)]
        same = {i for i in judged if watch.unchanged(i, parameters[i])}
        watch.start = {i: kept for i, kept in watch.start.items() if i in same or i not in judged}
        places = [i for i in same if plain_part(parameters[i].grad) is not None]
        sizes = dict(zip(places, largest(self._attachment.ops, [plain_part(parameters[i].grad) for i in places])))
        for place, size in sizes.items():
            if 0 < size < float("inf") and not self._only_rounding(place, size, program.written.of(optimizer)[1].names, parameters):
                tried = in_fp32(self._attachment.ops, optimizer, groups[place], parameters[place])
                if tried is not None and tried.moves >= LEAST_MOVED:
                    watch.unmoved.append((place, tried))

    def _only_rounding(self, place: int, size: float, names: list, parameters) -> bool:
        """Whether it is a bias of which nothing depends (before a normalization, say): its gradient is what rounding leaves, and small
        beside that of the weight."""
        module, _, last = names[place].rpartition(".")
        beside = f"{module}.weight" if module else "weight"
        if last != "bias" or beside not in names:
            return False
        gradient = plain_part(parameters[names.index(beside)].grad)
        return gradient is not None and size < ROUNDING * largest(self._attachment.ops, [gradient])[0]

    def after_update(self, watch) -> None:
        """The update was made: those that still have not changed."""
        rows, watch.unmoved = watch.unmoved, []
        optimizer, program = watch.optimizer(), probe.program
        if optimizer is None or program is None or not watch.is_of(optimizer):
            return
        parameters = parameters_of(optimizer)
        rows = [(place, tried) for place, tried in rows if watch.unchanged(place, parameters[place])]
        if not rows:
            return
        format_name = str(parameters[rows[0][0]].dtype).removeprefix("torch.")
        first = program.written.of(optimizer)[1].names[rows[0][0]]
        share = statistics.mean(tried.moves for _, tried in rows)
        units = statistics.median(tried.units for _, tried in rows)
        many = len(rows) > 1
        self._say(
            "swallowed",
            "SWALLOWED_UPDATE",
            f"{weights(len(rows), watch.size)} of {type(optimizer).__name__} {'have' if many else 'has'} not changed by a bit in {watch.made} "
            f"updates although {'their' if many else 'its'} gradients are not 0 (first: {first}): an update is {units:.1g} of half a unit of "
            f"{format_name}. In fp32, tried on this step, {100 * share:.0f} % of the values change: keep fp32 weights (autocast), or round "
            "stochastically",
            first,
        )
