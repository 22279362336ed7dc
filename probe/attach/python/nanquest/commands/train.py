"""`nanquest train`: nanquest-trainer inside this process. Ranks started by torchrun communicate by a process group of gloo or NCCL,
which LibTorch can create from Python but not from C++, because gloo's headers are not shipped.

    torchrun --nproc-per-node 2 -m nanquest train finetune --model models/tiny-llama --data prepared
"""

from __future__ import annotations

import ctypes
import os
import sys

from ..base import library

USAGE = 2
NAME = "libnanquest_trainer.so"


def _refused(problem: str) -> int:
    if os.environ.get("RANK", "0") == "0":
        print(f"nanquest: {problem}", file=sys.stderr)
    return USAGE


def _load(torch_version: str):
    trainer = library.beside(
        NAME,
        torch_version,
        "install nanquest with the trainer (pip install . -C cmake.define.NANQUEST_TRAINER=ON), "
        "or build the target nanquest_trainer_python",
    ).nanquest_trainer
    trainer.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p]
    trainer.restype = ctypes.c_int
    return trainer


def main(arguments: list) -> int:
    """`arguments` are those of nanquest-trainer. Returns its exit code."""
    try:
        import torch
        from torch import distributed
    except ImportError as problem:
        return _refused(f"the Python {sys.executable} has no {problem.name or 'torch'}")
    try:
        trainer = _load(torch.__version__)
    except library.Unfit as problem:
        return _refused(str(problem))
    group = ""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        group = distributed.group.WORLD.group_name
    code = trainer(*library.as_argv("nanquest-trainer", arguments), group.encode())
    if code != 0:
        os._exit(code)  # other ranks may have ended, and a clean-up would wait for them
    if group:
        distributed.destroy_process_group()
    return 0
