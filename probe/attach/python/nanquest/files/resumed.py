"""An optimizer whose state was loaded: whether its first updates are made with what was saved."""

from __future__ import annotations

import gc
import math
import weakref

import torch
from torch.optim.lr_scheduler import LRScheduler

from ..pytorch.optimizers import parameters_of, rates_of
from ..pytorch.values import largest, plain_part
from .bad_tensors import bad_in_words

UPDATES = 2  # that are looked at: a scheduler that begins anew sets its rate after the first
FAR = 2.0  # one step of a warm-up at most doubles a rate
LEAST_STEPS = 2  # moments of an optimizer that has made one update may be zero: torch.distributed.checkpoint makes one to get a state
_STEP = "step"
_COUNTED = 8  # step counts that are compared
_NARROW = (torch.float16, torch.bfloat16)


def _number(value) -> float | None:
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and not value.is_meta else None
    return float(value) if isinstance(value, (int, float)) else None


def _format(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _far(rate: float, saved: float) -> bool:
    return saved > 0 and not saved / FAR <= rate <= saved * FAR


class Resumed:
    def __init__(self, optimizer, state, rates_before: list, file: str):
        self.optimizer = weakref.ref(optimizer)
        self.file = file  # "" if it is not known
        self._made = 0  # updates looked at
        self._before = [_number(rate) for rate in rates_before]
        groups = state["param_groups"]
        self._rates = [_number(group.get("lr")) for group in groups]
        keys = [key for group in groups for key in group["params"]]
        self._size = len(keys)
        self._steps, self._formats = {}, {}  # by place: the step count; key -> format
        for place, key in enumerate(keys):
            saved = state["state"].get(key)
            if not isinstance(saved, dict):
                continue
            if _STEP in saved and len(self._steps) < _COUNTED and (count := _number(saved[_STEP])) is not None:
                self._steps[place] = count
            self._formats[place] = {
                name: it.dtype for name, it in saved.items() if name != _STEP and isinstance(it, torch.Tensor) and it.is_floating_point()
            }

    def waits(self) -> bool:
        return self._made < UPDATES

    def look(self, ops, names: list) -> list:
        """Before an update: [(what, label, text, tensor)] of what is not as it was saved."""
        self._made += 1
        optimizer = self.optimizer()
        if len(parameters_of(optimizer)) != self._size:
            return []  # the program has added weights
        found = self._rate(optimizer)
        if self._made == 1:
            found += self._values(ops, optimizer, names) + self._other_formats(optimizer, names) + self._step_counts(optimizer, names)
        return found

    def _state(self, optimizer):
        """(place, key, tensor) of each moment."""
        for place, parameter in enumerate(parameters_of(optimizer)):
            for key, value in optimizer.state.get(parameter, {}).items():
                if key != _STEP and isinstance(value, torch.Tensor) and value.is_floating_point():
                    part = plain_part(value)
                    if part is not None:
                        yield place, key, part

    def _values(self, ops, optimizer, names: list) -> list:
        kind = type(optimizer).__name__
        moments = [*self._state(optimizer)]
        numbers = ops.non_finite([part for _, _, part in moments]) if moments else []
        bad = [(*it, nan, inf) for it, nan, inf in zip(moments, numbers[::2], numbers[1::2]) if nan or inf]
        if bad:
            place, key, part, nan, inf = bad[0]
            shown = f"{key} of {names[place]}"
            text = f"the loaded state of {kind} holds NaN or Inf: {bad_in_words(shown, part.numel(), nan, inf, len(bad) - 1)}"
            return [("moments", "BAD_STATE", text, names[place])]
        counted = max(self._steps.values(), default=0)
        if moments and counted >= LEAST_STEPS and not any(largest(ops, [part for _, _, part in moments])):
            keys = ", ".join(dict.fromkeys(key for _, key, _ in moments))
            text = f"the loaded state of {kind} is all zero ({keys}) although it counts {counted:g} steps: it begins as if it were new"
            return [("moments", "BAD_STATE", text, names[moments[0][0]])]
        return []

    def _other_formats(self, optimizer, names: list) -> list:
        rows = [
            (place, key, saved, part.dtype)
            for place, key, part in self._state(optimizer)
            if (saved := self._formats.get(place, {}).get(key, part.dtype)) != part.dtype and (saved in _NARROW or part.dtype in _NARROW)
        ]
        if not rows:
            return []
        place, key, saved, kept = rows[0]
        more = f" ({len(rows) - 1} more)" if len(rows) > 1 else ""
        what = "the file has lost" if saved in _NARROW else "loading has lost"
        text = (
            f"{key} of {names[place]}{more} was saved in {_format(saved)} and is kept in {_format(kept)}: {what} the digits that "
            f"{_format(saved if saved in _NARROW else kept)} can't hold"
        )
        return [("formats", "STATE_PRECISION", text, names[place])]

    def _step_counts(self, optimizer, names: list) -> list:
        parameters = parameters_of(optimizer)
        for place, saved in self._steps.items():
            value = optimizer.state.get(parameters[place], {}).get(_STEP)
            now = _number(value)
            if now is None or now == saved or math.isnan(saved):
                continue
            narrow = isinstance(value, torch.Tensor) and value.dtype in _NARROW
            text = f"the step count of {type(optimizer).__name__} is {now:g} for {names[place]}, and the loaded state has {saved:g}" + (
                f": {_format(value.dtype)} can't count so far" if narrow else ""
            )
            return [("steps", "STATE_PRECISION" if narrow else "BAD_STATE", text, names[place])]
        return []

    def _rate(self, optimizer) -> list:
        """A rate far from the saved one, if it is that from before the load, or a scheduler has set it that counts from the beginning."""
        for place, (rate, saved) in enumerate(zip(rates_of(optimizer), self._rates)):
            if saved is None or not _far(rate, saved):
                continue
            schedulers = self._new_schedulers(optimizer)
            before = self._before[place] if place < len(self._before) else None
            if not schedulers and (before is None or not math.isclose(rate, before, rel_tol=1e-6)):
                continue
            why = f": {schedulers[0]} counts from the beginning, so its state was not loaded" if schedulers else ", which was not kept"
            return [("rate", "BAD_STATE", f"the rate of {type(optimizer).__name__} is {rate:g}; the loaded state has {saved:g}{why}", "")]
        return []

    def _new_schedulers(self, optimizer) -> list:
        """Kinds of schedulers of this optimizer that count no step from before this run."""
        found = [it for it in gc.get_objects() if issubclass(type(it), LRScheduler) and vars(it).get("optimizer") is optimizer]
        return [type(it).__name__ for it in found if vars(it).get("last_epoch", self._made) < self._made]
