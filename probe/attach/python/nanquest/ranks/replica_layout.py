"""The weights that a DistributedDataParallel keeps alike, in the order of the model, and which byte ranges are compared in which update."""

from __future__ import annotations

import functools
import hashlib
import weakref

import torch

from ..pytorch.names import held_by, is_plain
from ..pytorch.shards import own_part

PART = 4 << 20  # bytes of a weight that are hashed together
WITNESSES = 8  # number of weights whose gradients are checked for equality


@functools.cache
def _processor() -> str:
    """The processor: the last bits of a result may depend on it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            model = next((line for line in file if line.startswith(("model name", "CPU part"))), "")
    except OSError:
        model = ""
    return f"{model}{torch.backends.cpu.get_cpu_capability()}"


class Layout:
    """The weights of one module in the order of the model, divided into parts, and the parts into turns."""

    def __init__(self, module, turns):
        self.names, self._held, self.trained, sizes, marks = [], [], [], [], []
        self.ids = set()
        self.turns = []  # (number of a weight, first byte, bytes) of each turn; empty if not all of them can be hashed
        self.witnesses = []
        here = True
        for path, part in module.module.named_modules():
            for key, parameter in part._parameters.items():
                name = f"{path}.{key}" if path else key
                if parameter is None or id(parameter) in self.ids or name in module.parameters_to_ignore:
                    continue
                self.ids.add(id(parameter))
                own = own_part(parameter)
                here = here and is_plain(own) and own.device.type == "cpu"
                if not here:
                    continue
                self.names.append(name)
                self._held.append((weakref.ref(part), key))
                self.trained.append(parameter.requires_grad)
                sizes.append(own.numel() * own.element_size())
                marks.append((name, tuple(own.shape), own.stride(), str(own.dtype), parameter.requires_grad))
        asked = [weight for weight, trained in enumerate(self.trained) if trained]
        if not here or not asked:
            return
        self.witnesses = asked[:: -(-len(asked) // WITNESSES)]
        # As many turns as parts of a minimum size allow: in a small model most updates compare nothing.
        total = sum(sizes)
        self.turns = [[] for _ in range(max(1, min(turns, -(-total // PART))))]
        before = 0
        for weight, size in enumerate(sizes):
            for begin in range(0, size, PART):
                self.turns[before * len(self.turns) // total].append((weight, begin, min(PART, size - begin)))
                before += min(PART, size - begin)
        self.fingerprint = hashlib.blake2b(repr((marks, _processor(), torch.get_num_threads())).encode(), digest_size=8).digest()

    def parameter(self, number):
        """The weight; None if it was freed."""
        holder, key = self._held[number]
        return held_by(getattr(holder(), "_parameters", {}), key)
