"""The programs of the package: nanquest-replay, nanquest-trainer, nanquest-viewer."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig

from . import library, package

FOLDER = "NANQUEST_BIN"
OF_TORCH = ("nanquest-replay", "nanquest-trainer")  # linked with LibTorch
GET = {
    "nanquest-replay": "install nanquest, or build the target nanquest-replay",
    "nanquest-trainer": "install it with the trainer (pip install . -C cmake.define.NANQUEST_TRAINER=ON), or build the "
    "target nanquest-trainer",
    "nanquest-viewer": "install it with the viewer (pip install . -C cmake.define.NANQUEST_VIEWER=ON), or build the target nanquest-viewer",
}


class Missing(Exception):
    """There is no such program; the text says what to do."""


def _is_program(path: str) -> bool:
    """Not a script: the package installs one for each program, which comes here to find the program."""
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):
        return False
    with open(path, "rb") as file:
        return b"nanquest.base.programs" not in file.read(2000)


def find(name: str) -> str:
    """Its path: in the folder that NANQUEST_BIN names, in this package, beside the command `nanquest`, among this Python's scripts, or
    wherever the shell finds it."""
    packaged = library.folder_of(library.installed_torch()[1]) if name in OF_TORCH else package.LIBRARIES
    folders = [os.environ.get(FOLDER, ""), packaged, os.path.dirname(os.path.realpath(sys.argv[0])), sysconfig.get_path("scripts") or ""]
    for folder in [*folders, *os.environ.get("PATH", os.defpath).split(os.pathsep)]:
        path = os.path.join(folder, name)
        if folder and _is_program(path):
            return path
    raise Missing(_why_missing(name))


def _why_missing(name: str) -> str:
    """In a package with libraries for PyTorch, what PyTorch it would take."""
    version = library.installed_torch()[1]
    if name not in OF_TORCH or library.named() or not library.served():
        return f"{name} is not there; {GET.get(name, 'install nanquest')}, or name its folder in {FOLDER}"
    if not version:
        return f"{name} needs PyTorch, and {sys.executable} has none: pip install torch (without it: nanquest explain, nanquest view)"
    if library.minor_of(version) not in library.served():
        return f"this nanquest serves {library.served_in_words()}, but {sys.executable} has {version} ({library.FROM_SOURCE})"
    return f"{name} is not in this package; {GET[name]}"


def command(name: str) -> list:
    """The words that start it. A program of the package looks for LibTorch beside the package; where it is elsewhere, the loader is told."""
    path, torch = find(name), library.installed_torch()[0]
    if not path.startswith(package.LIBRARIES + os.sep) or name not in OF_TORCH:
        return [path]
    beside = os.path.join(os.path.dirname(package.FOLDER), "torch")
    if os.path.realpath(beside) == os.path.realpath(torch):
        return [path]
    places = [os.path.join(torch, "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH", "")])]
    return [shutil.which("env") or "env", f"LD_LIBRARY_PATH={os.pathsep.join(places)}", path]


def become(name: str, arguments: list) -> int:
    """Replaces this process by that program. Returns only on failure: the exit code."""
    try:
        words = command(name)
        sys.stdout.flush()
        os.execv(words[0], [name, *words[1:], *arguments])
    except (Missing, OSError) as problem:
        print(f"nanquest: {problem}", file=sys.stderr)
    return 127


def replay() -> int:
    """The script nanquest-replay."""
    return become("nanquest-replay", sys.argv[1:])


def trainer() -> int:
    return become("nanquest-trainer", sys.argv[1:])


def viewer() -> int:
    return become("nanquest-viewer", sys.argv[1:])
