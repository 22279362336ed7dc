"""Activations that checkpointing computes again in backward, compared with those of forward. If they differ, gradients are those of
another function: of another dropout, say. Compared in the steps that are looked at, in a sample; in other steps nothing is replaced.

What only rounding can make (kernels that add in another order) is far below the limit.
"""

from __future__ import annotations

import sys

import torch
from torch.utils.checkpoint import CheckpointFunction

from ..base.probe_state import probe
from ..base.say import say
from ..pytorch import private
from ..pytorch.guarded import in_backward
from ..pytorch.names import is_plain
from ..pytorch.values import aside, sample

VALUES = 4096  # of one activation
MOST = 512  # activations of a step
LIMIT = 0.03  # norm of the difference, as a share of the activation's
_FRAMES = 24
_NOTES = "default"  # what checkpointing notes if the program asks for nothing else


class _Noted(dict):
    """What checkpointing notes of an activation, to compare it with what is computed again; and the values."""

    recomputed = None  # the Recomputed that compares
    kept = None  # (place, where, sample): of forward
    again = None  # the activation: of backward

    def __ne__(self, other):
        if self.kept is not None and isinstance(other, _Noted) and other.again is not None:
            self.recomputed.computed_again(self.kept, other.again)
        return dict.__ne__(self, other)

    def __eq__(self, other):
        return dict.__eq__(self, other)

    __hash__ = None


class Recomputed:
    def __init__(self, attachment, say_once):
        self._attachment, self._say = attachment, say_once
        self._own = None  # what checkpointing notes by itself, while that is replaced
        self._pairs = []  # (place in forward, where, sample in forward, sample in backward)
        self._kept = 0  # activations of forward
        self._off = False
        self.compares = False

    def begin(self) -> None:
        """From now until `judge`, activations are compared."""
        if self._off:
            return
        self._pairs, self._kept, self.compares = [], 0, True
        table = private.checkpoint_notes.find()
        if isinstance(table, dict) and callable(own := table.get(_NOTES)) and self._own is None:
            self._own, table[_NOTES] = own, self._note

    def remove(self) -> None:
        """Nothing is compared or replaced any more."""
        self.compares = False
        if self._own is not None:
            private.checkpoint_notes.find()[_NOTES], self._own = self._own, None

    def _safely(self, work, *args):
        """Inside the program's own passes: they go on, whatever happens here."""
        try:
            return work(*args)
        except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
            self._off, self.compares = True, False
            say(f"what checkpointing computes again is not compared: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return None

    # Without use_reentrant, checkpointing notes what each operation saves for backward, and compares that in backward.

    def _note(self, tensor):
        noted = (self._own or _shape_of)(tensor)
        if not self.compares or type(noted) is not dict or torch.compiler.is_compiling():
            return noted
        described = _Noted(noted)
        described.recomputed = self
        if in_backward():
            described.again = tensor
        else:
            described.kept = self._safely(self._keep, tensor)
        return described

    def _keep(self, tensor):
        """(place, where, sample), None if it is not compared. Running statistics and states of random numbers have fewer dimensions."""
        if self._kept >= MOST or not is_plain(tensor) or tensor.dim() < 2 or not tensor.numel():
            return None
        if not tensor.is_floating_point() and tensor.dtype is not torch.bool:
            return None
        self._kept += 1
        with aside(self._attachment.ops):
            return self._kept, self._where(), self._sample(tensor)

    @staticmethod
    def _sample(tensor):
        return sample(tensor.detach(), VALUES).to(torch.float32, copy=True)

    def computed_again(self, kept, tensor) -> None:
        self._safely(self._compare, kept, tensor)

    def _compare(self, kept, tensor) -> None:
        place, where, first = kept
        if not self.compares or not is_plain(tensor):
            return
        with aside(self._attachment.ops):
            again = self._sample(tensor)
        if first.shape == again.shape:
            self._pairs.append((place, where, first, again))

    # With use_reentrant, the whole function runs again.

    def observed(self, function):
        """The function, whose results in backward are compared with those in forward."""
        kept = []

        def run(*args):
            results = function(*args)
            self._safely(self._results, kept, results)
            return results

        return run

    def _results(self, kept: list, results) -> None:
        tensors = [it for it in (results if isinstance(results, (tuple, list)) else [results]) if isinstance(it, torch.Tensor)]
        if not in_backward():
            kept[:] = [self._keep(it) for it in tensors] if self.compares else []
        for each, again in zip(kept, tensors) if in_backward() else ():
            if each is not None:
                self._compare(each, again)

    @staticmethod
    def _where() -> str:
        """The path of the innermost module that runs, "" if it is not known."""
        frame, paths = sys._getframe(1), probe.program.paths if probe.program is not None else None
        for _ in range(_FRAMES):
            if (frame := frame.f_back) is None or paths is None:
                break
            module = frame.f_locals.get("self")
            if issubclass(type(module), torch.nn.Module) and (known := paths.of(module)) is not None:
                return known[0].decode()
        return ""

    def judge(self) -> None:
        """At an update: backward is over."""
        pairs, self._pairs = sorted(self._pairs, key=lambda pair: pair[0]), []
        self.remove()
        rows = []
        for _, where, first, again in pairs:
            with aside(self._attachment.ops):
                apart, size = float((again - first).norm()), float(first.norm())
            if LIMIT * size < apart < float("inf"):
                rows.append((where, apart / size if size else 1.0))
        if rows:
            where, share = rows[0]
            text = (
                f"activations that checkpointing computes again in backward are not those of forward ({len(rows)} of {len(pairs)} compared"
                f"{'; first in ' + where if where else ''}: {100 * share:.2g} % apart): the gradients are wrong. Keep the random numbers "
                "(preserve_rng_state=True, which does not keep those of Python and NumPy), and change nothing that the function reads"
            )
            self._say("recomputed", "WRONG_GRADIENT", text, where)


def _shape_of(tensor) -> dict:
    """What checkpointing notes, for a pass that began while it was replaced."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def install(patches, attachment) -> Recomputed:
    def around(own):
        def forward(ctx, run_function, *args):
            recomputed = attachment.learning.recomputed
            compares = recomputed.compares and not torch.compiler.is_compiling()
            return own(ctx, recomputed.observed(run_function) if compares else run_function, *args)

        return forward

    patches.put(CheckpointFunction, "forward", around)
    return attachment.learning.recomputed
