"""A callback for the Trainer of transformers.

    from nanquest.huggingface import NanquestCallback
    trainer = Trainer(..., callbacks=[NanquestCallback()])

`nanquest run` works without it. With it, steps have the Trainer's own numbers (also after a resume), files carry its
arguments, and incidents name the samples by their index in the training set. It attaches the probe if nothing has.
"""

from __future__ import annotations

from transformers import TrainerCallback

import nanquest

from .base.probe_state import probe
from .start import process


class NanquestCallback(TrainerCallback):
    """`settings` are those of nanquest.attach; they are used only if the probe is not attached yet."""

    def __init__(self, **settings):
        self._settings = settings
        self._loader = None

    def on_train_begin(self, args, state, control, train_dataloader=None, **kwargs):
        if probe.current is None:
            nanquest.attach(**self._settings)
        told = args.to_sanitized_dict() if hasattr(args, "to_sanitized_dict") else vars(args)
        process.configure({f"trainer.{key}": value for key, value in told.items() if value not in (None, "", [])})
        process.follow_batches()
        self._loader = train_dataloader

    def on_step_begin(self, args, state, control, **kwargs):
        nanquest.step(state.global_step)
        process.take_batches(self._loader, args.gradient_accumulation_steps)
