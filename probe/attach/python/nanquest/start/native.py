"""Programs that are not Python: whether the probe can be loaded into them, and what has to be set for that.

A program that is linked with LibTorch loads libnanquest_preload.so first (LD_PRELOAD), which loads the probe beside it before main.
Other programs started that way (a shell, mpirun, make) only pass the variable on.
"""

from __future__ import annotations

import dataclasses
import errno
import mmap
import os
import re
import shutil
import stat
import struct
import subprocess

from ..base import library, package
from ..base.settings import PROGRAM, WITHHOLDS, Settings

PRELOAD = "libnanquest_preload.so"
TORCH = "libtorch_cpu.so"
# The mangled name of a LibTorch class that every program containing LibTorch holds: the only sign of it in a stripped one.
INSIDE = b"N5torch8autograd6EngineE"
PATIENCE = 60  # seconds for the loader to list libraries
PYTHON = re.compile(r"(python|pypy)[\d.]*")
INTERPRETER = 3  # PT_INTERP


@dataclasses.dataclass
class Program:
    """What `nanquest run` is about to start."""

    preload: bool = False  # the probe may be loaded by LD_PRELOAD into it, or into what it starts
    torch: bool = False  # it is linked with LibTorch itself
    refused: str = ""  # it contains LibTorch, but the probe can't be loaded: a line that says why


def _start_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _is_python(path: str, start: bytes) -> bool:
    if PYTHON.fullmatch(os.path.basename(path)) or PYTHON.fullmatch(os.path.basename(os.path.realpath(path))):
        return True
    return start.startswith(b"#!") and b"python" in start.partition(b"\n")[0]


def _loader(path: str) -> str | None:
    """The loader that a 64-bit ELF program names; "" if it is linked statically; None for anything else."""
    start = _start_of(path)
    if start[:5] != b"\x7fELF\x02" or len(start) < 64:
        return None
    order = "<" if start[5] == 1 else ">"
    (place,) = struct.unpack_from(order + "Q", start, 32)
    size, count = struct.unpack_from(order + "HH", start, 54)
    try:
        with open(path, "rb") as file:
            for number in range(count):
                file.seek(place + number * size)
                kind, _, offset, _, _, length = struct.unpack(order + "IIQQQQ", file.read(40))
                if kind == INTERPRETER:
                    file.seek(offset)
                    return file.read(length).rstrip(b"\0").decode()
    except (OSError, struct.error, UnicodeDecodeError):
        return None
    return ""


def _libraries(path: str, loader: str) -> list:
    """Names of all libraries that the loader would load; None if it can't list them."""
    try:
        said = subprocess.run(
            [loader, "--list", path], text=True, errors="replace", capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [os.path.basename(line.split()[0]) for line in said.splitlines() if line.strip()]


def _holds_torch(path: str) -> bool:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(INSIDE) >= 0
    except (OSError, ValueError):
        return False


def _has_other_rights(path: str) -> bool:
    """Whether the loader ignores LD_PRELOAD for it: setuid, setgid, capabilities."""
    facts = os.stat(path)
    if facts.st_mode & stat.S_ISUID and facts.st_uid != os.getuid() or facts.st_mode & stat.S_ISGID and facts.st_gid != os.getgid():
        return True
    try:
        return os.getuid() != 0 and bool(os.getxattr(path, "security.capability"))
    except OSError as problem:
        return problem.errno in (errno.EACCES, errno.EPERM)


def look(command: list) -> Program:
    """What this command is, judged by its first word. Never fails."""
    path = shutil.which(command[0]) or command[0]
    name, start = os.path.basename(path), _start_of(path)
    if _is_python(path, start):
        return Program()
    if start[:4] != b"\x7fELF":
        return Program(preload=True)
    without = "it runs without the probe"
    if start[4:5] == b"\x01":
        return Program(refused=f"{name} has 32 bits, and the probe 64: {without}" if _holds_torch(path) else "")
    loader = _loader(path)
    libraries = _libraries(path, loader) if loader else []
    if TORCH not in libraries:
        if not _holds_torch(path):
            return Program(preload=True)
        return Program(
            refused=f"{name} has LibTorch inside (linked statically), where no library gets in from outside: {without}; "
            "link it with libtorch.so, or build it with nanquest::probe"
        )
    if _has_other_rights(path):
        return Program(
            torch=True,
            refused=f"{name} runs with the rights of another (setuid, setgid or capabilities), so the loader takes in no "
            f"other library: {without}; run a copy of the file without them",
        )
    if any(each.startswith("libasan.so") for each in libraries):
        return Program(
            torch=True, refused=f"{name} is built with AddressSanitizer, which wants to be the first library: {without}; build it without"
        )
    if re.search("[ :]", preload()):
        return Program(
            torch=True,
            refused=f"{preload()} has a space or a colon in its path, where the loader parts names: {without}; install nanquest elsewhere",
        )
    if not os.path.exists(preload()):
        return Program(torch=True, refused=f"{preload()} is missing: {name} runs without the probe; build it (target nanquest_preload)")
    return Program(preload=True, torch=True)


def preload() -> str:
    """The library that is preloaded: one for every PyTorch that the package serves, or beside the library that is named."""
    return os.path.join(os.path.dirname(os.path.abspath(library.named())) if library.named() else package.LIBRARIES, PRELOAD)


def why_not(program: Program, settings: Settings) -> str:
    """A line if a setting can't be applied to this program."""
    if program.torch and not program.refused and settings.on_incident in WITHHOLDS:
        return (
            f"--on-incident {settings.on_incident} keeps an optimizer from writing, and that of a program without Python asks nobody; "
            "write --on-incident continue or stop"
        )
    return ""


def environment(settings: Settings) -> dict:
    """The variables that make programs with LibTorch attach with `settings`; {} if the library is missing."""
    if not os.path.exists(preload()) or re.search("[ :]", preload()):
        return {}
    before = [path for path in re.split(r"[: ]", os.environ.get("LD_PRELOAD", "")) if path and path != preload()]
    return {"LD_PRELOAD": ":".join([*before, preload()]), PROGRAM: settings.to_json(os.path.abspath(settings.run_dir), 0, 1)}
