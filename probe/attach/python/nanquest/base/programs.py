"""The programs beside the package: nanquest-replay, nanquest-trainer, nanquest-viewer."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig

FOLDER = "NANQUEST_BIN"
GET = {
    "nanquest-replay": "install nanquest, or build the target nanquest-replay",
    "nanquest-trainer": "install it with the trainer (pip install . -C cmake.define.NANQUEST_TRAINER=ON), or build the "
    "target nanquest-trainer",
    "nanquest-viewer": "install it with the viewer (pip install . -C cmake.define.NANQUEST_VIEWER=ON), or build the target nanquest-viewer",
}


class Missing(Exception):
    """There is no such program; the text says what to do."""


def find(name: str) -> str:
    """Its path: in the folder that NANQUEST_BIN names, beside the command `nanquest`, among this Python's scripts, or on PATH."""
    folders = [os.environ.get(FOLDER, ""), os.path.dirname(os.path.realpath(sys.argv[0])), sysconfig.get_path("scripts") or ""]
    for folder in folders:
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if found := shutil.which(name):
        return found
    raise Missing(f"{name} is not there; {GET.get(name, 'install nanquest')}, or name its folder in {FOLDER}")


def become(name: str, arguments: list) -> int:
    """Replaces this process by that program. Returns only on failure: the exit code."""
    try:
        path = find(name)
        sys.stdout.flush()
        os.execv(path, [name, *arguments])
    except (Missing, OSError) as problem:
        print(f"nanquest: {problem}", file=sys.stderr)
    return 127
