"""Finds the libnanquest_attach.so that was built for this PyTorch, and loads it. An installed package has a folder for each minor version
of PyTorch that it serves, lib/torch-2.15: patch releases of one minor share their C++ interfaces."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys

from . import package, settings

NAME = "libnanquest_attach.so"
FROM_SOURCE = "in nanquest's source folder, `pip install --no-deps .` builds it for this PyTorch"


class Unfit(Exception):
    """The probe can't be used here; the text says why and what to do."""


def named() -> str:
    """The library that NANQUEST_ATTACH_LIBRARY names, "" without it."""
    return os.environ.get(settings.LIBRARY, "")


def minor_of(version: str) -> str:
    """Of "2.15.0+cu130": "2.15". A preview such as "2.9.0a0+145a3a7" is like no release: all of its text."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return release[1] if release else version


def folder_of(torch_version: str) -> str:
    """Where the package has what belongs to this PyTorch, whether or not it is there."""
    return os.path.join(package.LIBRARIES, "torch-" + ".".join(torch_version.split(".")[:2]))


def served() -> list:
    """The minor versions of PyTorch that this package has libraries for, oldest first; that of the named library alone, if one is named."""
    if named():
        return [minor_of(built_for(named()))] if os.path.exists(named()) else []
    try:
        names = [name.removeprefix("torch-") for name in os.listdir(package.LIBRARIES) if name.startswith("torch-")]
    except OSError:
        return []
    return sorted(names, key=lambda minor: [int(part) for part in re.findall(r"\d+", minor)])


def served_in_words() -> str:
    return f"PyTorch {', '.join(served())}" if served() else "no PyTorch"


def installed_torch() -> tuple:
    """(folder, version) of this Python's torch, which is not imported; ("", "") without one."""
    try:
        spec = importlib.util.find_spec("torch")
        folder = spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else ""
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__ = ['\"]([^'\"]+)", file.read(), re.M)
    except (OSError, ValueError):
        return "", ""
    return (folder, found[1]) if found else ("", "")


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
    """The library's path if it fits this PyTorch, else Unfit. Nothing is loaded."""
    library = named() or os.path.join(folder_of(torch_version), NAME)
    if not os.path.exists(library):
        if named() or not served():
            raise Unfit(f"{library} is missing; install nanquest, or build it and name it in {settings.LIBRARY}")
        raise Unfit(
            f"this nanquest serves {served_in_words()}, but this program has {torch_version}; the program runs without the probe ({FROM_SOURCE})"
        )
    wanted = built_for(library)
    if minor_of(torch_version) != minor_of(wanted):
        raise Unfit(
            f"the probe was built for PyTorch {wanted}, but this program has {torch_version}; the program runs without the probe ({FROM_SOURCE})"
        )
    return library


def check_build(torch) -> None:
    """Unfit where the imported PyTorch was compiled in a way that changes its C++ interfaces."""
    old_strings = not getattr(torch, "compiled_with_cxx11_abi", lambda: True)()
    if old_strings or getattr(torch.version, "debug", False) is True:
        how = "with the C++ ABI from before 2015" if old_strings else "for debugging"
        raise Unfit(
            f"this PyTorch was compiled {how}, and nanquest is not; the program runs without the probe (a release of PyPI or conda-forge works)"
        )


def load(library: str) -> ctypes.PyDLL:
    """Loads it with local symbols, so that its HDF5 does not conflict with that of h5py. These calls keep Python's lock: they take less time
    than releasing it, and another thread might keep it long."""
    try:
        handle = ctypes.PyDLL(library, mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise Unfit(_why_not_loaded(error)) from None
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


def _why_not_loaded(error: OSError) -> str:
    """Relocation comes first, so nothing of a library that can't be loaded has run."""
    text = str(error)
    if "undefined symbol" in text:
        return f"the probe does not fit this PyTorch, which was compiled otherwise than that of PyPI ({text}); the program runs without it ({FROM_SOURCE})"
    if "GLIBC" in text:
        return f"the probe needs a newer C library than this system's ({text}); the program runs without it ({FROM_SOURCE})"
    return f"the probe can't be loaded: {text}; the program runs without it ({FROM_SOURCE})"


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
