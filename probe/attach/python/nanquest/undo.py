"""What a step that is left out must not leave behind: what its passes wrote into buffers, and the random numbers they drew."""

from __future__ import annotations

import weakref

import torch

from .naming import is_plain
from .settings import say

LIMIT = 64 * 2**20  # bytes of buffers that are copied in every step


class Undo:
    def __init__(self):
        self._places = {}    # (id of a module, key) -> weak reference to the module: buffers of models that train
        self._bytes = 0
        self._held = None    # (weak module, key, buffer) of the step that runs

    def learn(self, root) -> None:
        """The buffers of a model that trains, smallest first; masks of booleans are constants."""
        found = [(module, key, buffer) for module in root.modules() for key, buffer in module._buffers.items()
                 if buffer is not None and is_plain(buffer) and buffer.dtype != torch.bool]
        left = []
        for module, key, buffer in sorted(found, key=lambda entry: entry[2].numel() * entry[2].element_size()):
            if (known := self._places.get((id(module), key))) is not None and known() is module:
                continue
            size = buffer.numel() * buffer.element_size()
            if self._bytes + size > LIMIT:
                left.append(buffer)
                continue
            self._bytes += size
            self._places[id(module), key] = weakref.ref(module)
        if left:
            say(f"{len(left)} buffers of {sum(b.numel() * b.element_size() for b in left) / 1e6:.0f} MB stay as they are when a "
                f"step is skipped: no more than {LIMIT // 2**20} MiB are copied in every step")

    def begins(self, attachment) -> None:
        """A pass begins: the first one of a step is where a skipped step goes back to."""
        if self._held is not None:
            return
        held = []
        for (ident, key), module in list(self._places.items()):
            living = module()
            if living is None:
                del self._places[ident, key]
            elif (buffer := living._buffers.get(key)) is not None and is_plain(buffer):
                held.append((module, key, buffer))
        self._held = held
        attachment.ops.remember([buffer for _, _, buffer in held])

    def put_back(self, attachment) -> None:
        """Buffers and generators are as they were when the step began."""
        if not attachment.ops.put_back():
            attachment.say_once("this program draws random numbers between its passes: those of a skipped step stay drawn, so that "
                                "it does not get the same batch again")
        for module, key, buffer in self._held or ():
            # A program may have put another in its place.
            if module() is not None and module()._buffers.get(key) is not buffer:
                module()._buffers[key] = buffer
        self._held = None

    def forget(self) -> None:
        """The step was made."""
        self._held = None
