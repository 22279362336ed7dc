"""Which tensors of a file are the program's state: weights, buffers and moments, or copies of them."""

from __future__ import annotations

import json

_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


class Entry:
    """A tensor of the program's state."""

    __slots__ = ("kind", "name", "elements", "memory", "since_start", "since", "op")

    def __init__(self, kind, name, elements, memory, since_start, since, op):
        self.kind, self.name, self.elements, self.memory = kind, name, elements, memory
        self.since_start = since_start  # it was bad before the first update
        self.since = since  # the step after which it was bad, -1 if it is not known to be bad
        self.op = op  # which wrote it then, or last in the step that runs; "" if that is not known

    def may_be_meant(self, nan: int) -> bool:
        """Whether its bad values may have been put in on purpose, like those of a mask: a buffer that was so from the beginning, or got
        infinities that are no incident; infinities that a weight began with."""
        if self.kind == "buffer":
            return self.since_start or (not nan and self.since < 0)
        return self.since_start and not nan


def _words(path: str) -> list:
    return [word for word in path.split(".") if word not in _WRAPPERS]


class StateNames:
    """What the library knows of the program's state. Any thread may read it; addresses are those of the moment it was made."""

    def __init__(self, text: str):
        self._entries = [Entry(**it) for it in json.loads(text or "[]")]
        self._in_memory, self._named = {}, {}
        for entry in self._entries:
            self._in_memory.setdefault(entry.memory, entry)
            self._named.setdefault(entry.name.rpartition(".")[2], []).append((_words(entry.name), entry))
        self._weights = [entry for entry in self._entries if entry.kind == "parameter"]

    def weights_in_a_row(self, found: list) -> dict:
        """{group: [Entry]}: lists that hold as many tensors as there are weights, of the same sizes (averages are often kept so)."""
        groups = {}
        for it in found:
            if it.group:
                groups.setdefault(it.group, []).append(it.tensor.numel())
        sizes = [entry.elements for entry in self._weights]
        return {group: self._weights for group, numbers in groups.items() if sizes and numbers == sizes}

    def same_memory(self, tensor):
        """The Entry whose memory this is, or None."""
        return self._in_memory.get(tensor.untyped_storage().data_ptr())

    def same_name(self, path: str, elements: int):
        """The Entry of which this may be a copy by its path, or None: one name ends like the other, and the sizes are
        the same."""
        words = _words(path)
        if not words:
            return None
        for known, entry in self._named.get(words[-1], ()):
            short = min(len(known), len(words))
            same_size = entry.elements == elements or (known == words and short > 1)  # of a sharded weight the whole may be saved
            if same_size and known[-short:] == words[-short:]:
                return entry
        return None

    def state_among(self, found: list, memory: bool) -> list:
        """[(Found, Entry or None)] of those that are the program's state. `memory`: addresses may be compared."""
        rows, at, state = self.weights_in_a_row(found), {}, []
        for it in found:
            entry = self.same_memory(it.tensor) if memory else None
            if it.group in rows:
                place = at[it.group] = at.get(it.group, -1) + 1
                entry = entry or rows[it.group][place]
            entry = entry or self.same_name(it.path, it.tensor.numel())
            if entry is not None or it.is_weight or it.is_moment:
                state.append((it, entry))
        return state
