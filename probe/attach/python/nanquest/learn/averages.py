"""Averages of weights (EMA, a target network) that are kept in 16 bits: with a decay close to 1 each change is below half a unit of the
format, and the average stays as it began."""

from __future__ import annotations

import gc
import time

import torch

from ..pytorch.names import is_plain, living, living_optimizers
from ..pytorch.optimizers import parameters_of
from ..pytorch.values import aside, plain_part, sample
from .trial import half_units
from .watch import NARROW

VALUES = 1 << 14  # of one tensor
MOST = 256  # tensors
LEAST = 64  # values of a tensor
AWAY = 16  # half units; values whose weight is farther away have to move
LEAST_AWAY = 0.1  # share of the values
LEAST_STUCK = 0.95  # share of those that have not changed
SHARE = 0.002  # of the time may be spent on looks: one goes through all objects of the program
_AVERAGING = {f"aten::{name}" for name in ("lerp_", "add_", "addcmul_", "_foreach_lerp_", "_foreach_add_", "copy_", "_foreach_copy_")}
_COPIES = {"aten::copy_", "aten::_foreach_copy_"}


class Averages:
    def __init__(self, attachment, say):
        self._attachment, self._say = attachment, say
        self._kept = {}  # id of a tensor -> (address, values, updates made by then)
        self.waits = 0  # updates made when the step that runs ends, if it is to be looked at
        self._next = 0.0  # the time before which another look would cost too much
        self._looks = attachment.settings.level != "guard"  # which op writes an average is known from the record of a step

    def update_made(self, made: int, first: bool) -> None:
        """The step that this update ends is to be looked at. `first`: it is one of the first looks, which are made whatever they cost."""
        if self._looks and (first or time.monotonic() >= self._next):
            self.waits = made

    def step_ends(self, program) -> None:
        """What follows the update was done, and no other step has begun. Of a step whose update is not on record (--keep-percent) it is not
        known which op wrote what: then the next one is looked at."""
        if self._kept and not self._on_record(program):
            return
        made, self.waits = self.waits, 0
        begun = time.thread_time()
        self._look(program, made)
        self._next = time.monotonic() + (time.thread_time() - begun) / SHARE

    def _look(self, program, made: int) -> None:
        objects = gc.get_objects()
        weights, order, optimizers = {}, {}, living_optimizers(objects)
        for optimizer in optimizers:
            for parameter in parameters_of(optimizer):
                order.setdefault(id(parameter), len(order))
                if (part := plain_part(parameter)) is not None and part.numel() >= LEAST:
                    weights.setdefault(part.shape, []).append((parameter, part))
        before, self._kept, stuck = self._kept, {}, []
        candidates = self._candidates(weights, optimizers, objects)
        del objects
        for it in candidates:
            known = before.get(id(it))
            with aside(self._attachment.ops):
                values = sample(it.detach(), VALUES).to("cpu", copy=True)
            if known is None or known[0] != it.data_ptr() or known[1].shape != values.shape:
                self._kept[id(it)] = (it.data_ptr(), values, made)
                continue
            found = self._stuck(it, known, values, weights[it.shape])
            self._kept[id(it)] = known if found is not None else (it.data_ptr(), values, made)
            if found is not None:
                stuck.append((*found, it.dtype, made - known[2]))
        if stuck:
            stuck.sort(key=lambda found: order[id(found[0])])  # the collector lists objects in any order
            self._tell(program, stuck)

    def _on_record(self, program) -> bool:
        parts = (plain_part(parameter) for optimizer in program.written.optimizers() for parameter in parameters_of(optimizer)[:1])
        return any(self._attachment.ops.last_writer_of(part) for part in parts if part is not None)

    @staticmethod
    def _candidates(weights: dict, optimizers: list, objects: list) -> list:
        """Tensors in 16 bits of a weight's shape that no optimizer holds."""
        held = set()
        for optimizer in optimizers:
            for parameter in parameters_of(optimizer):
                held.update((id(parameter), id(parameter.grad)))
            held.update(id(value) for state in optimizer.state.values() if isinstance(state, dict) for value in state.values())
        plain = (it for it in objects if type(it) in (torch.Tensor, torch.nn.Parameter) and is_plain(it))
        found = (it for it in plain if it.dtype in NARROW and it.shape in weights and it.grad_fn is None and id(it) not in held)
        return [it for it, _ in zip((it for it in found if it.grad is None), range(MOST))]

    def _stuck(self, tensor, known, values, weights: list):
        """(weight, distance in units, op) if the average is written and stays where it was, away from its weight; else None."""
        op = self._attachment.ops.last_writer_of(tensor)
        if op not in _AVERAGING or (op in _COPIES and not self._is_averaged(tensor)):
            return None
        with aside(self._attachment.ops):
            apart = [(sample(part, VALUES).cpu().float() - values.float()).abs() for _, part in weights]
            nearest = min(range(len(apart)), key=lambda i: float(apart[i].sum()))  # of the weights of this shape: it is that one's
            halves = apart[nearest] / half_units(values)
            away = halves >= AWAY
            if float(away.float().mean()) < LEAST_AWAY:
                return None
            same = float((values == known[1])[away].float().mean())
            return (weights[nearest][0], float(halves[away].median()) / 2, op) if same >= LEAST_STUCK else None

    @staticmethod
    def _is_averaged(tensor) -> bool:
        """Whether torch's own AveragedModel holds it: a copy is no average otherwise, but of other weights or of gathered parts."""
        return any(any(it is tensor for it in holder.parameters()) for holder in living(torch.optim.swa_utils.AveragedModel))

    def _tell(self, program, stuck: list) -> None:
        weight, units, op, dtype, updates = stuck[0]
        known, many = program.numbers.of(weight), len(stuck) > 1
        name = known[1] if known else "a weight"
        text = (f"{len(stuck)} averages of weights in " if many else "1 average of a weight in ") + (
            f"{str(dtype).removeprefix('torch.')} {'have' if many else 'has'} not moved in {updates} updates (first: of {name}), although {op} "
            f"writes {'them' if many else 'it'} and the weight is {units:.0f} units away: each change is below half a unit. Keep averages in "
            "float32"
        )
        self._say("average", "STATE_PRECISION", text, name)
