"""Where PyTorch programs write their state: torch.save, safetensors, torch.distributed.checkpoint. What Trainers, save_pretrained and
Lightning write goes through these."""

from __future__ import annotations

import sys

import torch

from ..base.import_watch import Waiting

_FRAMES = 16
_SAFETENSORS, _PLANNER = "safetensors.torch", "torch.distributed.checkpoint.default_planner"


def argument(args, kwargs, place: int, name: str):
    return args[place] if len(args) > place else kwargs.get(name)


def _by_distributed() -> bool:
    """Whether torch.distributed.checkpoint calls torch.save for a part of what was looked at as a whole."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("torch.distributed.checkpoint")


def distributed_path(storage: str) -> str:
    """Where torch.distributed.checkpoint is about to write or read. `storage`: storage_writer or storage_reader."""
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if (frame := frame.f_back) is None:
            return ""
        path = getattr(frame.f_locals.get(storage), "path", None)
        if path is not None:
            return str(path)
    return ""


def replace_copies(patches, name: str, own, stand_in) -> None:
    """Modules that imported the function by name before it was replaced get the other one, too."""
    for module in [*sys.modules.values()]:
        members = getattr(module, "__dict__", None)
        if type(members) is dict:
            for key in (name, "safe_" + name):
                if members.get(key) is own:
                    patches.put(module, key, lambda _: stand_in)


def install(patches, writes) -> Waiting:
    def around_save(own):
        looked_at = writes.around(
            own, lambda args, kwargs: argument(args, kwargs, 0, "obj"), lambda args, kwargs: argument(args, kwargs, 1, "f")
        )

        def save(*args, **kwargs):
            return (own if _by_distributed() else looked_at)(*args, **kwargs)

        return save

    for owner in (torch, torch.serialization):
        patches.put(owner, "save", around_save)

    def of_safetensors(module) -> None:
        for name in ("save_file", "save"):
            own = vars(module).get(name)
            patches.put(
                module,
                name,
                lambda own: writes.around(
                    own,
                    lambda args, kwargs: argument(args, kwargs, 0, "tensors"),
                    lambda args, kwargs: argument(args, kwargs, 1, "filename"),
                ),
            )
            if name == "save_file":
                replace_copies(patches, name, own, vars(module)[name])

    def of_distributed(module) -> None:
        patches.put(
            module.DefaultSavePlanner,
            "set_up_planner",
            lambda own: writes.around(
                own, lambda args, kwargs: argument(args, kwargs, 1, "state_dict"), lambda *_: distributed_path("storage_writer")
            ),
        )

    waiting = Waiting({_SAFETENSORS: of_safetensors, _PLANNER: of_distributed})
    waiting.begin()
    return waiting
