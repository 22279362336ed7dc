"""`nanquest replay`: nanquest-replay, and with `--import MODULE` inside this process. Operators that a program has defined in Python
(torch.library.custom_op) can only run in Python.

    nanquest replay --import my_kernels run/incidents/step-00000131.r0.h5
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import signal
import sys

from ..base import library, programs

NAME, PROGRAM, IMPORT = "libnanquest_replay.so", "nanquest-replay", "--import"
USAGE = 2


def _asked(arguments: list) -> tuple:
    """(modules, the other arguments). Throws ValueError."""
    modules, rest, words = [], [], iter(arguments)
    for word in words:
        if word == IMPORT:
            modules.append(next(words, ""))
        elif word.startswith(IMPORT + "="):
            modules.append(word.partition("=")[2])
        else:
            rest.append(word)
    if "" in modules:
        raise ValueError(f"{IMPORT} needs the name of a module, or a file: {IMPORT} my_kernels")
    return modules, rest


def _import(module: str) -> None:
    """Imports by name, as a program started here would, or loads the file itself with its folder on the path. Output of the module does
    not mix with replay's results."""
    is_file = module.endswith(".py")
    place = os.path.dirname(os.path.abspath(module)) if is_file else os.getcwd()
    if place not in sys.path:
        sys.path.insert(0, place)
    with contextlib.redirect_stdout(sys.stderr):
        if not is_file:
            importlib.import_module(module)
            return
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(module))[0], module)
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)


def main(arguments: list) -> int:
    """The exit code. Does not return if nothing is imported: the program then replaces this process."""
    try:
        modules, rest = _asked(arguments)
        if not modules:
            return programs.become(PROGRAM, rest)
        import torch
        import torch._dynamo  # the first call of a Python operator imports it, with FSDP's operators, which replay has registered by then

        replay = library.beside(
            NAME, torch.__version__, "install nanquest again, or build the target nanquest_replay_python"
        ).nanquest_replay
    except (ValueError, ImportError, library.Unfit) as problem:
        print(f"nanquest: {problem}", file=sys.stderr)
        return USAGE
    for module in modules:
        try:
            _import(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a program's own text)
            print(f"nanquest: {IMPORT} {module}: {type(error).__name__}: {error}", file=sys.stderr)
            return USAGE
    replay.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    replay.restype = ctypes.c_int
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's signal handler runs only after replay returns
    return replay(*library.as_argv(PROGRAM, rest))
