"""Small pieces of data that the ranks of a run leave for each other without waiting: in the launcher's store if a server keeps it,
otherwise in files of the run directory."""

from __future__ import annotations

import os

import torch

from ..base.settings import RUN_ID
from ..pytorch import private

SLOTS = 4  # the last ones of each rank are kept; older ones are overwritten


class _Store:
    def __init__(self, store, rank, ranks):
        self._store, self._rank, self._ranks = store, rank, ranks
        self._there = set()  # slots that all ranks have written at least once

    def put(self, slot: int, value: bytes) -> None:
        self._store.set(f"{slot}.{self._rank}", value)

    def all(self, slot: int):
        """What each rank has left there last; None if a rank has left nothing yet."""
        keys = [f"{slot}.{rank}" for rank in self._ranks]
        if slot not in self._there:
            if not self._store.check(keys):
                return None
            self._there.add(slot)
        return [bytes(value) for value in self._store.multi_get(keys)]


class _Files:
    """If ranks don't see each other's files, nothing is compared."""

    def __init__(self, folder, name, rank, ranks):
        self._folder, self._name, self._rank, self._ranks = folder, name, rank, ranks
        # Files of an earlier run must not be read.
        self._run = f"{os.environ.get(RUN_ID, '')} {os.environ.get('TORCHELASTIC_RESTART_COUNT', '')}\n".encode()
        for slot in range(SLOTS):
            try:
                os.unlink(self._path(slot, rank))
            except FileNotFoundError:
                pass

    def _path(self, slot, rank):
        return os.path.join(self._folder, f".{self._name}.{slot}.r{rank}")

    def put(self, slot: int, value: bytes) -> None:
        path = self._path(slot, self._rank)
        with open(f"{path}.part", "wb") as file:
            file.write(self._run + value)
        os.replace(f"{path}.part", path)

    def all(self, slot: int):
        found = []
        for rank in self._ranks:
            try:
                with open(self._path(slot, rank), "rb") as file:
                    text = file.read()
            except FileNotFoundError:
                return None
            if not text.startswith(self._run):
                return None
            found.append(text[len(self._run) :])
        return found


def _served():
    """The launcher's store if a server keeps it: a request takes as long as the server's answer, whatever other ranks do."""
    try:
        store = kept = private.default_store.find()()
    except Exception:  # noqa: BLE001 (there is none (MPI))
        return None
    while isinstance(kept, torch.distributed.PrefixStore):
        kept = kept.underlying_store
    return store if isinstance(kept, torch.distributed.TCPStore) else None


def between(name: str, rank: int, ranks: list, run_dir: str):
    """`name`: the same on all of them, and different for every other purpose. What `ranks` leave is read."""
    store = _served()
    if store is not None:
        return _Store(torch.distributed.PrefixStore(f"nanquest/{name}", store), rank, ranks)
    return _Files(os.path.abspath(run_dir), name, rank, ranks)
