"""With --bad-checkpoint refuse: a program that rotates its files does not remove the last clean one while what it would write now is bad.
The call returns without an error, the file stays, and a line says so."""

from __future__ import annotations

import os
import shutil

from ..base.run_directory import shorter
from ..base.say import say


class Removals:
    def __init__(self, attachment, files):
        self._attachment, self._files = attachment, files
        self._said = set()

    def _kept(self, path, whole_folder: bool) -> str:
        """The last clean file that removing `path` would take, "" if it takes none."""
        try:
            path = os.path.realpath(os.fsdecode(path))
            for file in self._files.needed(all_series=self._state_is_bad()):
                there = os.path.realpath(file)
                if there == path or (whole_folder and there.startswith(path + os.sep)):
                    return file
        except Exception:  # noqa: BLE001 (what the probe does not understand is the program's own business)
            pass
        return ""

    def _state_is_bad(self) -> bool:
        attachment = self._attachment
        return attachment.on_training_thread() and bool(attachment.incident_files) and bool(attachment.ops.spoiled_weight())

    def _around(self, own, whole_folder: bool):
        def remove(path, *args, **kwargs):
            if self._attachment.off or kwargs.get("dir_fd") is not None or not (kept := self._kept(path, whole_folder)):
                return own(path, *args, **kwargs)
            if kept not in self._said:
                self._said.add(kept)
                say(f"{shorter(kept)} stays, although the program wants to remove it: it is the last clean file of its series")
            return None

        return remove

    def install(self, patches) -> None:
        for name in ("remove", "unlink"):
            patches.put(os, name, lambda own: self._around(own, whole_folder=False))
        patches.put(shutil, "rmtree", lambda own: self._around(own, whole_folder=True))
