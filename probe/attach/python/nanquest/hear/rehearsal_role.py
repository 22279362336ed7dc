"""A rehearsal in the program's own process: makes the change, and reports each step to `nanquest rehearse`.

Its plan is in NANQUEST_REHEARSAL, a JSON object: "reports" (folder), "until" (the step after which the program is ended),
"first_step" (number of the first step that the program makes, null: to be found), "change" (changes.Change), "placebo" (a seed, null:
none). Each process writes JSON lines to reports/r<rank>.<pid>: {"first_step", "low"}, {"step", "loss"} of every update, {"failed",
"failure"}, {"reached"}, {"refused"}, {"placebo"}, {"note"}.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import re

import torch
from torch.optim import optimizer as optimizers

from ..base.changes import Change, in_force
from ..base.probe_state import probe
from ..base.rank import place_in_group
from ..base.settings import PLAN
from ..policy.fp32_fallback import Fallback
from ..policy.fp32_formats import Rates
from ..policy.fp32_inputs import LOW
from ..pytorch.guarded import guarded
from ..pytorch.names import is_plain, living_optimizers
from ..pytorch.shards import own_part
from ..steps.program import known_program

_TRAINERS = {"TrainerState": ("transformers",), "Trainer": ("lightning", "pytorch_lightning")}
_WORDS = {
    torch.float16: (torch.int16, 0),
    torch.bfloat16: (torch.int16, 0),
    torch.float32: (torch.int32, 0),
    torch.float64: (torch.int64, 0),
}
_PASSES = 10_000  # after this many passes without an update, none is expected
_CUT = {torch.float16: 13, torch.bfloat16: 16}  # bits of fp32 that autocast to these formats drops


def steps_of_trainer() -> int:
    """How many steps a Trainer of transformers or Lightning in this process has counted; 0 if there is none."""
    found = [0]
    for it in gc.get_objects():
        kind = type(it)
        if kind.__name__ in _TRAINERS and str(kind.__module__).partition(".")[0] in _TRAINERS[kind.__name__]:
            try:
                found.append(int(it.global_step))
            except Exception:  # noqa: BLE001 (a Trainer that does not train)
                pass
    return max(found)


def steps_of_state(optimizer) -> int:
    """How many updates an optimizer has counted; 0 if it does not count."""
    counts = [state["step"] for state in optimizer.state.values() if isinstance(state, dict) and "step" in state]
    return max((int(count) for count in counts), default=0)


class Role:
    """The part of one process in a rehearsal. The hooks of the probe call it, on the training thread."""

    def __init__(self, attached, plan: dict):
        self._attached = attached
        self._plan = plan
        self._until = plan["until"]
        self.change = Change(**plan["change"])
        self.rates = Rates(changes=self._settings())
        self._file = None
        self._begun = self._over = False
        self._passes = 0  # of models that train
        self._told = -1  # the last step whose loss was reported
        self._low = None  # the 16-bit format of autocast, if it was on

    @property
    def withholds(self) -> bool:
        """Whether steps may have to be undone, or a fallback tried."""
        return bool(self.change.skip) or self.change.fp32

    def _settings(self) -> dict:
        """For Rates: the new values of a group's settings."""
        groups, changes = self.change.groups, {}
        for name in ("lr", "weight_decay", "momentum", "eps"):
            if name in groups:
                changes[name] = lambda value, to=groups[name]: in_force(to, value)
        if "beta1" in groups or "beta2" in groups:
            changes["betas"] = lambda betas: tuple(in_force(groups.get(f"beta{i + 1}", ["*", 1.0]), beta) for i, beta in enumerate(betas))
        if self.change.warmup:
            inner = changes.get("lr", lambda rate: rate)
            changes["lr"] = lambda rate: inner(rate) * min(1.0, (self._attached.ops.step() + 1) / self.change.warmup)
        return changes

    # What is reported.

    def _tell(self, **facts) -> None:
        if self._file is None:
            name = f"r{place_in_group()[0]}.{os.getpid()}"
            self._file = open(os.path.join(self._plan["reports"], name), "a", encoding="utf-8")  # noqa: SIM115
        self._file.write(json.dumps(facts) + "\n")
        self._file.flush()

    def _end(self, outcome: str) -> None:
        """Ends the program with exit code 0."""
        self._over = True
        self._attached.finish(outcome, look_back=False)
        raise SystemExit(0)

    def refuse(self, why: str) -> None:
        """Reports that the change is not possible in this program, and ends it."""
        self._tell(refused=why)
        self._end("this can't be rehearsed")

    def lost(self, why: str) -> None:
        """The probe was switched off; the program goes on without it."""
        if not self._over:
            self._tell(refused=why)

    def went_bad(self, step: int, summary: str) -> None:
        """The library found an incident. It ends the rehearsal, unless this step is to be skipped."""
        if not self._over and step not in self.change.skip:
            self._over = True
            # The rest of the line is about a file, and a rehearsal writes no files.
            self._tell(failed=step, failure=re.split("; (?:level guard keeps no trace|no snapshot: )", summary)[0])

    def ends_if_bad(self) -> None:
        if self._over:
            self._end("it went bad")

    # Where steps begin.

    def _begin(self, optimizer=None) -> None:
        """Called once, as soon as the step's number can be known."""
        if self._begun:
            return
        self._begun = True
        given = self._plan["first_step"]
        if given is None and not self._attached.ops.step():
            holders = [optimizer] if optimizer is not None else living_optimizers()
            given = steps_of_trainer() or max((steps_of_state(each) for each in holders), default=0)
        if given:
            self._attached.ops.set_step(given)
        self._tell(first_step=self._attached.ops.step())

    def first_pass(self, program) -> None:
        """A model with trainable weights is about to be called."""
        self._passes += 1
        if self._passes > _PASSES and self._told < 0:
            self.refuse("no optimizer of PyTorch writes its weights, so nothing can be changed in its steps, nor can they be counted")
        if self._passes > 1:
            return
        self._begin()
        if self.change.fp32:
            if why := Fallback(program, living_optimizers(), 1.0).take():
                self.refuse(f"precision=fp32 is not possible here: {why}")
            self._attached.fell_back = self._attached.ops.step()

    def autocast(self, context) -> None:
        """An autocast context is entered."""
        if context._enabled and context.fast_dtype in LOW:
            self._low = context.fast_dtype

    # Around an update.

    def before_update(self, optimizer) -> None:
        """Before the gradients are judged."""
        self._begin(optimizer)
        if self._told < 0:
            if why := self._why_not(optimizer):
                self.refuse(why)

    def _why_not(self, optimizer) -> str:
        if self.change.fp32 and probe.fallback is None:
            return "precision=fp32 needs a program that calls a model as a whole"
        for name in self.change.groups:
            key = "betas" if name.startswith("beta") else name
            if not any(key in group for group in optimizer.param_groups):
                has = [each for each in ("lr", "weight_decay", "momentum", "betas", "eps") if each in optimizer.param_groups[0]]
                return f"{name}: {type(optimizer).__name__} has no such setting (it has {', '.join(has)})"
        return ""

    def leaves_out(self) -> bool:
        """Whether to skip the update of the running step."""
        return self._attached.ops.step() in self.change.skip

    def gradients_are_there(self, optimizer) -> None:
        """The gradients were judged, and the optimizer is about to write."""
        if not self.change.clip:
            return
        given = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if given:
            # A fused optimizer divides by the loss scale itself.
            scale = getattr(optimizer, "grad_scale", None)
            limit = self.change.clip * (float(scale) if scale is not None else 1.0)
            torch.nn.utils.clip_grads_with_norm_(given, limit, torch.nn.utils.get_total_norm([p.grad for p in given]))

    def _flip(self, seed: int, optimizer) -> None:
        """Changes the last bit, in the run's format, of one weight that matters: neither it nor its gradient is 0. Done after the first
        update: before it, the update's own rounding would often undo it."""
        draw = random.Random(seed)
        weights = [(p, own_part(p), own_part(p.grad)) for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        draw.shuffle(weights)
        for parameter, weight, gradient in weights:
            if not is_plain(weight) or not is_plain(gradient) or weight.dtype not in _WORDS:
                continue
            places = ((weight.data != 0) & (gradient != 0)).flatten().nonzero().flatten()
            if not places.numel() or not weight.data.is_contiguous():
                continue
            place = int(places[draw.randrange(places.numel())])
            bit = _CUT.get(self._low, 0) if weight.dtype is torch.float32 else 0
            word = weight.data.view(_WORDS[weight.dtype][0]).view(-1)
            word[place] = int(word[place]) ^ (1 << bit)
            name = known_program().numbers.of(parameter)
            self._tell(placebo=f"the last bit of {name[1] if name else 'a weight'}[{place}]")
            return
        self.refuse("no weight has a last bit that matters: all of them, or their gradients, are 0")

    def after_update(self, optimizer=None) -> None:
        """The update was made, or skipped."""
        if self._plan["placebo"] is not None and optimizer is not None:
            self._flip(self._plan["placebo"], optimizer)
            self._plan["placebo"] = None
        step, loss = self._attached.ops.step(), self._attached.ops.loss()
        if step != self._told:
            if self._told < 0:
                low = [p.dtype for group in optimizer.param_groups for p in group["params"]] if optimizer is not None else []
                self._tell(low=self._low is not None or any(dtype in LOW for dtype in low))
            self._told = step
            self._tell(step=step, loss=loss if math.isfinite(loss) and step not in self.change.skip else None)
        if step >= self._until:
            self._tell(reached=step)
            self._end("rehearsed")


@guarded
def _before(attached, optimizer, args, kwargs):
    attached.rehearsal.rates.before(optimizer)


@guarded
def _after(attached, optimizer, args, kwargs):
    attached.rehearsal.rates.after(optimizer)
    attached.rehearsal.after_update(optimizer)


def _around_enter(rehearsal):
    def around(own):
        def __enter__(context):
            rehearsal.autocast(context)
            return own(context)

        return __enter__

    return around


def install(attached, patches) -> list:
    """Starts, if this process is part of a rehearsal. Returns handles of hooks to remove."""
    if PLAN not in os.environ:
        return []
    attached.rehearsal = Role(attached, json.loads(os.environ[PLAN]))
    patches.put(torch.amp.autocast_mode.autocast, "__enter__", _around_enter(attached.rehearsal))
    return [optimizers.register_optimizer_step_pre_hook(_before), optimizers.register_optimizer_step_post_hook(_after)]
