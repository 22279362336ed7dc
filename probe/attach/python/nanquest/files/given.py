"""Since which step a model trains, and which of its weights and buffers load_state_dict gave it. The files hold it (a note for each model):
replay reads there whether a bad weight was loaded, or has perhaps never been written.
"""

from __future__ import annotations

import weakref

MOST_NAMES = 64  # of what was not loaded
_NOTE = "model_since."


class Given:
    def __init__(self):
        self._given = weakref.WeakKeyDictionary()  # module -> names of its own parameters and buffers that were loaded
        self._trains = weakref.WeakSet()  # models whose note is made

    def loaded(self, module, state) -> None:
        """`module` has loaded `state`, a dict by name."""
        keys = {}
        for name in state:
            owner, _, key = str(name).rpartition(".")
            keys.setdefault(owner, set()).add(key)
        for path, part in module.named_modules():
            if path in keys:
                self._given.setdefault(part, set()).update(keys[path])

    def first_pass(self, program, root) -> None:
        """A model that trains is about to be called, and has its names."""
        if root in self._trains:
            return
        self._trains.add(root)
        program.attached.ops.note(_NOTE + program.paths.add_root(root), f"{program.attached.ops.step()}{self._in_words(root)}")

    def _in_words(self, root) -> str:
        """What of it was loaded: "", " loaded" or " loaded but time.freq;head.weight"."""
        parts = dict(root.named_modules())
        if not any(part in self._given for part in parts.values()):
            # Transformers' from_pretrained fills weights one by one; it notes where they are from.
            return " loaded" if any(vars(part).get("name_or_path") for part in parts.values()) else ""
        missing = []
        for path, part in parts.items():
            own = (key for group in (part._parameters, part._buffers) for key, it in group.items() if it is not None)
            given = self._given.get(part, ())
            missing += [f"{path}.{key}" if path else key for key in own if key not in given]
        return " loaded but " + ";".join(missing[:MOST_NAMES]) if missing else " loaded"
