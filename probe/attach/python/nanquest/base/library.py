"""Finds libnanquest_attach.so, checks that it was built for this PyTorch, and loads it."""

from __future__ import annotations

import ctypes
import os
import re
import sys

from . import package, settings


class Unfit(Exception):
    """The probe can't be used here; the text says why and what to do."""


def path() -> str:
    """Where the library is: NANQUEST_ATTACH_LIBRARY, or beside this package."""
    named = os.environ.get(settings.LIBRARY)
    if named:
        return named
    return os.path.join(package.LIBRARIES, "libnanquest_attach.so")


def built_for(library: str) -> str:
    """The PyTorch version that the library was built for, as written beside it."""
    try:
        with open(os.path.splitext(library)[0] + ".version", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        raise Unfit(
            f"{os.path.splitext(library)[0]}.version can't be read, so the PyTorch version of the "
            "probe is not known; build or install nanquest again"
        ) from None


def check(torch_version: str) -> str:
    """The library's path if it fits this PyTorch, else Unfit."""
    library = path()
    if not os.path.exists(library):
        raise Unfit(f"{library} is missing; build it, or name it in {settings.LIBRARY}")
    wanted = built_for(library)
    release = re.match(r"\d+\.\d+\.\d+", torch_version)
    if not release or release.group() != wanted:
        raise Unfit(
            f"the probe was built for PyTorch {wanted}, but this program has {torch_version}; the program "
            "runs without the probe (install nanquest in this environment to build it for this PyTorch)"
        )
    return library


def load(library: str) -> ctypes.PyDLL:
    """Loads it with local symbols, so that its HDF5 does not conflict with that of h5py. These calls keep Python's lock: they take less time
    than releasing it, and another thread might keep it long."""
    try:
        handle = ctypes.PyDLL(library, mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise Unfit(
            f"the probe can't be loaded: {error}; the program runs without the probe (install nanquest again in this "
            "environment to build it anew)"
        ) from None
    handle.nanquest_push.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    handle.nanquest_push.restype = None
    handle.nanquest_phase.argtypes = [ctypes.c_int]
    handle.nanquest_phase.restype = ctypes.c_int
    handle.nanquest_pass.argtypes = [ctypes.c_int]
    handle.nanquest_pass.restype = None
    handle.nanquest_micro_batch.argtypes = [ctypes.c_int]
    handle.nanquest_micro_batch.restype = None
    handle.nanquest_pop.argtypes = []
    handle.nanquest_pop.restype = None
    return handle


def beside(name: str, torch_version: str, get: str) -> ctypes.CDLL:
    """Another library of this package, beside the probe's own and of the same version. `get`: what to do if it is missing."""
    place = os.path.join(os.path.dirname(check(torch_version)), name)
    if not os.path.exists(place):
        raise Unfit(f"{place} is missing; {get}")
    try:
        return ctypes.CDLL(place, mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise Unfit(f"{name} can't be loaded: {error}") from None


def as_argv(program: str, arguments: list) -> tuple:
    """(argc, argv) as C's main has them. Flushes what was printed so far, because such a program writes to stdout itself."""
    words = [os.fsencode(word) for word in (program, *arguments)]
    sys.stdout.flush()
    return len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)
