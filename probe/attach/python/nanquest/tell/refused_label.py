"""The sample whose label no class has, where a loss refuses the label with an error that ends the program."""

from __future__ import annotations

import re
import sys
import traceback

# What PyTorch says: nll_loss and cross_entropy; gather, scatter_ and one-hot codes by them.
_SAID = (r"Target (-?\d+) is out of bounds", r"index (-?\d+) is out of bounds for dimension \d+ with size \d+")
_MOST_LABELS = 1 << 22


def _refused() -> tuple | None:
    """(the label, the line of the error)"""
    error = getattr(sys, "last_value", None)
    line = str(error).splitlines()[0] if isinstance(error, (IndexError, RuntimeError)) and str(error) else ""
    found = next(filter(None, (re.search(pattern, line) for pattern in _SAID)), None)
    return (int(found[1]), line.rstrip(".")) if found else None


def _places(value, label: int) -> list:
    """Where a tensor of whole numbers holds the label."""
    kind = str(getattr(value, "dtype", ""))
    if not re.search(r"\bu?int\d+$", kind) or not hasattr(value, "nonzero") or not 0 < value.numel() <= _MOST_LABELS:
        return []
    return (value == label).nonzero().tolist()


def sentence() -> str:
    """Such as "sample 11 has the label 10 (target in cross_entropy): Target 10 is out of bounds"; "" without such an error."""
    refused = _refused()
    if refused is None:
        return ""
    label, line = refused
    for frame, _ in reversed(list(traceback.walk_tb(getattr(sys, "last_traceback", None)))):
        for name, value in list(frame.f_locals.items()):
            try:
                places = _places(value, label)
            except Exception:  # noqa: BLE001 (whatever a program's own object does; nothing here fails it)
                continue
            if places:
                place = str(places[0][0] if len(places[0]) == 1 else tuple(places[0])) if places[0] else "0"
                more = f" and {len(places) - 1} more" if len(places) > 1 else ""
                return f"sample {place}{more} has the label {label} ({name} in {frame.f_code.co_name}): {line}"
    return ""
