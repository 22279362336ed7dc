"""Undoes what a skipped step changed: buffers written by its passes, and the random numbers that they drew."""

from __future__ import annotations

import weakref

import torch

from ..pytorch.names import held_by, is_plain

LIMIT = 64 * 2**20  # limit in bytes for buffers that are copied in every step


class Undo:
    """The library knows whether a step is active; this object knows which modules hold the buffers."""

    def __init__(self, attachment):
        self._attached = attachment
        self._places = {}  # (id of a module, key) -> (weak reference to it, bytes): buffers of models that train
        self._held = ()  # (weak module, key, buffer) of the running step

    def learn(self, root) -> None:
        """The buffers of a model that trains, smallest first. Boolean buffers are skipped: they are constant masks."""
        found = [
            (module, key, buffer)
            for module in root.modules()
            for key, buffer in module._buffers.items()
            if buffer is not None and is_plain(buffer) and buffer.dtype != torch.bool
        ]
        self._places = {place: entry for place, entry in self._places.items() if entry[0]() is not None}
        copied, left = sum(size for _, size in self._places.values()), []
        for module, key, buffer in sorted(found, key=lambda entry: entry[2].numel() * entry[2].element_size()):
            if (known := self._places.get((id(module), key))) is not None and known[0]() is module:
                continue
            size = buffer.numel() * buffer.element_size()
            if copied + size > LIMIT:
                left.append(size)
                continue
            copied += size
            self._places[id(module), key] = weakref.ref(module), size
        if left:
            self._attached.say_once(
                f"{len(left)} buffers of {sum(left) / 1e6:.0f} MB are not restored when a step is skipped: at most "
                f"{LIMIT // 2**20} MiB of buffers are copied in each step"
            )

    def begins(self) -> None:
        """A pass begins. A skipped step goes back to the state before its first pass."""
        if self._attached.ops.remembers():
            return
        held = []
        for (_, key), (module, _) in self._places.items():
            living = module()
            if living is not None and (buffer := held_by(living._buffers, key)) is not None and is_plain(buffer):
                held.append((module, key, buffer))
        self._held = held
        self._attached.ops.remember([buffer for _, _, buffer in held])

    def put_back(self) -> None:
        """Restores buffers and generators to the beginning of the step."""
        held, self._held = self._held if self._attached.ops.remembers() else (), ()
        if not self._attached.ops.put_back():
            self._attached.say_once(
                "this program draws random numbers between its passes; they are not drawn again after a skipped step, so that "
                "it does not get the same batch again"
            )
        for module, key, buffer in held:
            # A program may have replaced the buffer.
            if module() is not None and held_by(module()._buffers, key) is not buffer:
                module()._buffers[key] = buffer

    def forget(self) -> None:
        """The step was made, or is kept: nothing will be restored, and no buffer is held any longer."""
        self._held = ()
        self._attached.ops.forget()
