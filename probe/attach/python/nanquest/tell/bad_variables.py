"""Variables with NaN or +Inf in the frames of the error that ended the program.

For errors outside a recorded step (a rollout or a generation without gradients, preparation of data): torch.distributions,
torch.multinomial and checks of the program raise there, and the error names the value but not its origin. -Inf is not counted: masks and
the start value of a maximum use it.
"""

from __future__ import annotations

import os
import sys
import traceback

from ..base import package
from ..base.run_directory import shorter

LARGEST = 1 << 24  # most elements that are looked at
MOST, EACH = 3, 2  # most frames, and variables of each, that are named
CONTAINED = 64  # most elements of a list or a dict


def _count(value):
    """(number of NaN or +Inf elements, number of elements) of a floating-point array; None for anything else."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    # No subclasses: reading a DTensor asks all ranks, and the others may be gone.
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        if not value.is_floating_point() or value.layout != torch.strided or not 0 < value.numel() <= LARGEST or value.is_meta:
            return None
        value = value.detach()
        value = value if value.element_size() > 1 else value.float()
        return int((value.isnan() | value.isposinf()).sum()), value.numel()
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "f" and 0 < value.size <= LARGEST:
        return int((numpy.isnan(value) | numpy.isposinf(value)).sum()), value.size
    return None


def _bad_in(name: str, value):
    """("obs['image']", 4, 16) for the first of the variable and its elements that is bad; None if none is."""
    parts = [(name, value)]
    if isinstance(value, dict):
        parts = [(f"{name}[{key!r}]", part) for key, part in list(value.items())[:CONTAINED]]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{name}[{i}]", part) for i, part in enumerate(value[:CONTAINED])]
    for part_name, part in parts:
        try:
            count = _count(part)
        except Exception:  # noqa: BLE001 (a tensor of a device that is gone, of a subclass that can do nothing)
            continue
        if count is not None and count[0]:
            return (part_name, *count)
    return None


def _words(bad) -> str:
    name, count, size = bad
    return f"{name} ({count} of {size} elements)" if size > 1 else name


def when_it_raised() -> str:
    """For the error that ends the program, from the outermost frame on: "NaN or Inf was in obs (4 of 4 elements) in collect,
    rollout.py:30; in logits (2 of 2 elements) in …". "" without an error, or if its frames hold nothing bad."""
    found = []
    for frame, line in traceback.walk_tb(getattr(sys, "last_traceback", None)):
        file = frame.f_code.co_filename
        if os.path.abspath(file).startswith(package.FOLDER + os.sep):
            continue
        bad = [each for each in (_bad_in(name, value) for name, value in list(frame.f_locals.items())) if each][:EACH]
        if bad:
            found.append(f"in {' and '.join(map(_words, bad))} in {frame.f_code.co_name}, {shorter(file)}:{line}")
    # The outermost frames are nearest to the origin; the innermost is where the error was raised.
    named = found if len(found) <= MOST else [*found[: MOST - 1], found[-1]]
    return "NaN or Inf was " + "; ".join(named) if named else ""
