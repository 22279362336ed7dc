"""An index that the error which ended the program refused: a label outside the classes, a token outside the vocabulary.

Such an error names the value at most; which sample of the batch has it is found in the variables of the frames.
"""

from __future__ import annotations

import os
import re
import sys
import traceback

from ..base import package
from ..base.run_directory import shorter

# gather, scatter_, index_select
_SAID = re.compile(r"index (-?\d+) is out of bounds for dimension \d+ with size (\d+)")
_LARGEST = 1 << 24  # elements that are looked at


def _whole_numbers(value) -> bool:
    import torch

    plain = type(value) is torch.Tensor and value.layout is torch.strided and not value.is_meta
    return plain and value.dtype in (torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8) and 0 < value.numel() <= _LARGEST


def _refused(frames, message: str):
    """(indices, the number below which they must be, what is ignored, words) of the innermost frame that tells; None if none does."""
    for frame, _ in reversed(frames):
        name, held = frame.f_code.co_name, frame.f_locals
        if name in ("cross_entropy", "nll_loss") and _whole_numbers(held.get("target")) and hasattr(held.get("input"), "dim"):
            given = held["input"]
            return held["target"], given.shape[1 if given.dim() > 1 else 0], held.get("ignore_index", -100), "label", "classes"
        if name == "embedding" and _whole_numbers(held.get("input")) and hasattr(held.get("weight"), "shape"):
            return held["input"], held["weight"].shape[0], None, "index", "rows"
    if found := _SAID.search(message):
        for frame, _ in reversed(frames):
            for held in list(frame.f_locals.values()):
                if _whole_numbers(held) and bool((held == int(found[1])).any()):
                    return held, int(found[2]), None, "index", "entries"
    return None


def when_it_raised() -> str:
    """Of the error that ends the program: "label 10 of sample 3 (target in step, train.py:31) is outside of 10 classes". "" without such
    an error."""
    error = getattr(sys, "last_value", None)
    if (
        "torch" not in sys.modules
        or not isinstance(error, (IndexError, RuntimeError))
        or not re.search("out of (bounds|range)", str(error))
    ):
        return ""
    frames = list(traceback.walk_tb(getattr(sys, "last_traceback", None)))
    found = _refused(frames, str(error))
    if found is None:
        return ""
    indices, limit, ignored, word, several = found
    bad = (indices < 0) | (indices >= limit)
    if ignored is not None:
        bad &= indices != ignored
    if not bad.any():
        return ""
    value = int(indices[bad].flatten()[0])
    where, place = indices, ""
    # The outermost variable with the same numbers is nearest to the data, and has a sample as its first dimension.
    for frame, line in frames:
        file = frame.f_code.co_filename
        if os.path.abspath(file).startswith(package.FOLDER + os.sep):
            continue
        same = [
            (name, held)
            for name, held in frame.f_locals.items()
            if _whole_numbers(held) and held.numel() == indices.numel() and bool((held.flatten() == indices.flatten()).all())
        ]
        if same:
            where, place = same[0][1], f" ({same[0][0]} in {frame.f_code.co_name}, {shorter(file)}:{line})"
            break
    at = [int(i) for i in bad.reshape(where.shape).nonzero()[0]] or [0]
    rest = f" at position {', '.join(map(str, at[1:]))}" if at[1:] else ""
    return f"{word} {value} of sample {at[0]}{rest}{place} is outside of {limit} {several}"
