"""Gradients that are not cleared: each update adds up those of earlier steps."""

from __future__ import annotations

from ..pytorch.optimizers import parameters_of
from ..pytorch.values import contents, largest, plain_part
from .no_gradient import weights

UPDATES = (20, 21, 22)  # in a row, each in the step after the one before
COMPARED = 8  # gradients


def backward_begins(attachment, watch) -> None:
    """Whether the gradients are still what the update before has used. What a program has changed meanwhile (a momentum of its own) is
    no oversight."""
    used, watch.used = watch.used, {}
    optimizer = watch.optimizer()
    if used and optimizer is not None and watch.is_of(optimizer) and attachment.ops.step() == watch.last_step + 1:
        parameters = parameters_of(optimizer)
        parts = {i: plain_part(parameters[i].grad) for i in used}
        watch.stays = all(part is not None and contents(attachment.ops, part) == used[i] for i, part in parts.items())


def look(attachment, watch, program, say) -> None:
    """At an update: whether backward has added to what the update before has used already. An optimizer that makes its update after
    several steps of another one accumulates on purpose, and is left alone."""
    parameters = parameters_of(watch.optimizer())
    found = [(part.numel(), i, part) for i, p in enumerate(parameters) if (part := plain_part(p.grad)) is not None]
    found = sorted(found, key=lambda it: it[:2])[:COMPARED]
    parts = [part for _, _, part in found]
    carried = watch.stays and bool(found) and all(attachment.ops.carried_over(parts))
    watch.carried = watch.carried + 1 if carried and watch.made in UPDATES else 0
    if watch.carried == len(UPDATES):
        kind, first = type(watch.optimizer()).__name__, program.written.of(watch.optimizer())[1].names[found[0][1]]
        text = (
            f"gradients of {kind} are not cleared between updates ({weights(len(found))} compared; first: {first}): backward adds to those "
            "of earlier steps. Call optimizer.zero_grad() before backward"
        )
        say("carried", "WRONG_GRADIENT", text, first)
    watch.last_step, watch.stays, watch.used = attachment.ops.step(), False, {}
    if watch.made < UPDATES[-1] and all(size > 0 for size in largest(attachment.ops, parts)):
        watch.used = {i: contents(attachment.ops, part) for _, i, part in found}
