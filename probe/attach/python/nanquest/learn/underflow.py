"""Gradients that float16 flushes to zero: those that are left crowd at its smallest numbers."""

from __future__ import annotations

import math

import torch

from ..pytorch.optimizers import parameters_of
from ..pytorch.values import aside, plain_part

SMALLEST, LARGEST = 2.0**-24, 65504.0
LEAST_VALUES, MOST_VALUES = 64, 1 << 22  # of a weight that is looked at
CROWDED = 8  # so many smallest numbers …
LEAST_CROWDED = 0.5  # … hold this share of the values that are not 0
LEAST_LOST = 0.2  # share of zeros
ROOM = 16  # the scale that is named leaves the largest gradient this factor below the end of the format
SHOWN = 3


def _lost(gradient, scale: float):
    """(share of zeros, largest value) in float16, if this gradient was computed there and is cut off at its lower end; else None. Rows
    and columns without any value don't count: an unused word, a unit that is off."""
    as_computed = gradient.float() * scale
    if not bool((as_computed.half().float() == as_computed).all()):
        return None
    rows = as_computed.reshape(as_computed.shape[0], -1) != 0
    used = int(rows.any(1).sum()) * int(rows.any(0).sum())
    values = as_computed[as_computed != 0].abs()
    if not used or not len(values):
        return None
    lost = 1 - len(values) / used
    crowded = float((values <= CROWDED * SMALLEST).float().mean())
    return (lost, float(values.max())) if lost >= LEAST_LOST and crowded >= LEAST_CROWDED else None


def look(attachment, watch, program, say) -> None:
    """At an update."""
    optimizer = watch.optimizer()
    scale = program.scaling.known_scale() or 1.0
    found = []
    for place, parameter in enumerate(parameters_of(optimizer)):
        gradient = plain_part(parameter.grad)
        if gradient is None or gradient.dim() < 2 or not LEAST_VALUES <= gradient.numel() <= MOST_VALUES:
            continue
        if gradient.dtype not in (torch.float16, torch.float32):
            continue
        with aside(attachment.ops):
            lost = _lost(gradient, scale if gradient.dtype == torch.float32 else 1.0)
        if lost is not None:
            found.append((lost[0], place, lost[1]))
    if not found:
        return
    room = math.floor(math.log2(LARGEST / ROOM / max(largest for _, _, largest in found)))
    if room <= 0:
        return
    names = program.written.of(optimizer)[1].names
    found.sort(reverse=True)
    shares = ", ".join(f"{names[place]} {100 * lost:.0f} %" for lost, place, _ in found[:SHOWN])
    more = f", {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    text = (
        f"gradients are flushed to zero by float16 ({shares}{more}): those that are left are at most {CROWDED} of its smallest numbers. A "
        f"loss scale of {scale * 2.0**room:.2g} keeps them, and leaves the largest {ROOM} times below the end of the format (now {scale:g}; "
        "torch.amp.GradScaler)"
    )
    say("flushed", "UNDERFLOW", text, names[found[0][1]])
