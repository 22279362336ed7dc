"""Where PyTorch programs read their state back: torch.load, safetensors, torch.distributed.checkpoint, load_state_dict of modules and
optimizers. What Trainers and Lightning resume from goes through these."""

from __future__ import annotations

import torch

from ..base.import_watch import Waiting
from .ways_out import argument, distributed_path, replace_copies

_SAFETENSORS, _PLANNER = "safetensors.torch", "torch.distributed.checkpoint.default_planner"


def install(patches, loads) -> Waiting:
    def around_read(name: str):
        def around(own):
            def read(*args, **kwargs):
                result = own(*args, **kwargs)
                loads.read(result, argument(args, kwargs, 0, name))
                return result

            return read

        return around

    def around_load(begins, ends):
        def around(own):
            def load_state_dict(self, *args, **kwargs):
                before = begins(self)
                result = own(self, *args, **kwargs)
                ends(self, argument(args, kwargs, 0, "state_dict"), before)
                return result

            return load_state_dict

        return around

    for owner in (torch, torch.serialization):
        patches.put(owner, "load", around_read("f"))
    patches.put(torch.nn.Module, "load_state_dict", around_load(loads.module_begins, loads.module_loaded))
    patches.put(torch.optim.Optimizer, "load_state_dict", around_load(loads.optimizer_begins, loads.optimizer_loaded))

    def of_safetensors(module) -> None:
        for name in ("load_file", "load"):
            own = vars(module).get(name)
            patches.put(module, name, around_read("filename"))
            if name == "load_file":
                replace_copies(patches, name, own, vars(module)[name])

    def of_distributed(module) -> None:
        def around(own):
            def set_up_planner(self, *args, **kwargs):
                # Its tensors are filled in place, later.
                loads.read(argument(args, kwargs, 0, "state_dict"), distributed_path("storage_reader"))
                return own(self, *args, **kwargs)

            return set_up_planner

        patches.put(module.DefaultLoadPlanner, "set_up_planner", around)

    waiting = Waiting({_SAFETENSORS: of_safetensors, _PLANNER: of_distributed})
    waiting.begin()
    return waiting
