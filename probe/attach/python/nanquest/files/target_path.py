"""Which file a program writes or reads."""

from __future__ import annotations

import os
import sys

_FRAMES = 16  # callers that are asked for the path of what is written into a buffer
_PATHS = ("path", "filepath", "filename", "file_path", "save_path", "checkpoint_path", "ckpt_path", "output_path", "file")


def path_of(target) -> str:
    """The path that a program writes to, as far as it can be known: of a path, an open file, or a buffer whose writer names it; else ""."""
    if isinstance(target, (str, os.PathLike)):
        return os.fspath(target)
    if isinstance(name := getattr(target, "name", None), str):
        return name
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if (frame := frame.f_back) is None:
            break
        if frame.f_globals.get("__name__", "").startswith(("torch.", "nanquest.")):
            continue
        for name in _PATHS:
            if isinstance(value := frame.f_locals.get(name), (str, os.PathLike)):
                return os.fspath(value)
    return ""
