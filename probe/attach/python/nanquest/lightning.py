"""A callback for Lightning's Trainer, of the package lightning or pytorch_lightning.

    from nanquest.lightning import NanquestCallback
    trainer = Trainer(..., callbacks=[NanquestCallback()])

`nanquest run` works without it. With it, steps have the Trainer's own numbers (global_step, also after a resume), files
carry the module's hyper-parameters, and a batch that is a dictionary with ids names its samples. It attaches the probe
if nothing has.
"""

from __future__ import annotations

import importlib
import sys

import nanquest

from .base.probe_state import probe
from .start import process
from .steps.sample_ids import as_names


def _callback_class():
    """The base class in the package that the program uses, or in the installed one if it has imported neither."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in sorted(names, key=lambda name: name.partition(".")[0] not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("nanquest.lightning needs the package lightning or pytorch_lightning")


class NanquestCallback(_callback_class()):
    """`settings` are those of nanquest.attach; they are used only if the probe is not attached yet."""

    def __init__(self, **settings):
        super().__init__()
        self._settings = settings

    def on_fit_start(self, trainer, pl_module):
        if probe.current is None:
            nanquest.attach(**self._settings)
        told = {
            "precision": getattr(trainer, "precision", None),
            "accumulate_grad_batches": getattr(trainer, "accumulate_grad_batches", None),
            "gradient_clip_val": getattr(trainer, "gradient_clip_val", None),
            **dict(getattr(pl_module, "hparams", {})),
        }
        process.configure({f"trainer.{key}": value for key, value in told.items() if value is not None})

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx, *args):
        # During an accumulation, global_step is still the number of the running step.
        nanquest.step(trainer.global_step)
        if isinstance(batch, dict) and (ids := as_names(batch)):
            nanquest.batch(ids)
