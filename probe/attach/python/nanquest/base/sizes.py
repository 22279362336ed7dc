"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def in_words(size: int) -> str:
    """Text such as "1.2 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TB"


def size_in(text: str) -> int:
    """Bytes of "20G", "500 MB", "1.5T", "4096"; ValueError for anything else, also for an empty text."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise ValueError(f"{text!r} is no size; write for example 20G")
    return size
