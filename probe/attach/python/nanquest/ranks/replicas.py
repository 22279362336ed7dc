"""Checks that weights which DistributedDataParallel keeps the same on all ranks really are the same.

Before every update each rank hashes a part of them, so that each weight is hashed once in --compare-replicas updates, and leaves the
hashes where the other ranks find them (exchange.py). At the next update the lowest rank compares them. No rank waits for another, and no
collective is called.

Only weights that are meant to be the same are compared. If gradients differ between ranks (local SGD, a hook of the program), weights may
differ on purpose, and nothing is reported. The same holds for updates without a sum of gradients (no_sync), uneven inputs (join), and
ranks on different processors or with different numbers of threads, because their last bits may differ.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
import sys
import weakref
from typing import NamedTuple

import torch

from ..base.probe_state import probe
from ..pytorch.guarded import in_backward
from ..pytorch.names import is_plain, living_modules
from ..pytorch.shards import own_part
from . import exchange
from .differing_ranks import Found, headline
from .replica_layout import Layout

AFRESH = 8  # after each weight was compared this often, the model's weights are listed again
WITNESS = 4096  # bytes of a gradient that are checked for equality
_HEADER = struct.Struct("<8sqqq")  # fingerprint of the layout, update, turn, hash of gradients
# Communication hooks that change gradients and still make them equal on all ranks.
_HOOKS = {
    "allreduce_hook",
    "fp16_compress_hook",
    "bf16_compress_hook",
    "powerSGD_hook",
    "batched_powerSGD_hook",
    "quantization_pertensor_hook",
    "quantization_perchannel_hook",
}

MOST_OTHERS = 16384  # limit in bytes for the names in a file

_numbers = itertools.count()


def _made_one(module) -> None:
    probe.times_replicated += 1
    probe.replicated[:] = [each for each in probe.replicated if each() is not None]
    probe.replicated.append(weakref.ref(module))


def _around_init(own):
    def __init__(self, *args, **kwargs):
        own(self, *args, **kwargs)
        _made_one(self)

    return __init__


def install(patches) -> None:
    """Follows which modules DistributedDataParallel wraps, including those that it has wrapped before."""
    parallel = getattr(sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", None)
    if parallel is None:
        return
    patches.put(parallel, "__init__", _around_init)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        known = {id(each()) for each in probe.replicated}
        for module in living_modules():
            if issubclass(type(module), parallel) and id(module) not in known:
                _made_one(module)


class _Replica:
    """One DistributedDataParallel, as the rank that runs here holds it."""

    def __init__(self, module, program, turns):
        self._module, self._program, self._turns = weakref.ref(module), program, turns
        self.ranks = torch.distributed.get_process_group_ranks(module.process_group)
        self._rank = torch.distributed.get_rank()
        self._exchange = exchange.between(f"replica-{next(_numbers)}", self._rank, self.ranks, program.attached.settings.run_dir)
        self._updates, self._looks, self._turn = 0, 0, -1
        self._open = []  # _Looks that this rank has not compared yet
        self._found = Found(self.ranks, turns)
        self.layout = None
        self.ended = len(self.ranks) < 2

    def before_update(self) -> None:
        module = self._module()
        if self.ended or module is None:
            return
        if not _alike(module):
            self.end()
            return
        if self._open:
            self._compare()
        turn, afresh = self._updates % self._turns, self._updates % (AFRESH * self._turns) == 0
        self._updates += 1
        if self._program.attached.paused or not (afresh or self.layout):
            return
        if afresh:
            self.layout = Layout(module, self._turns)
            self._program.replicas.tell_files()
        if turn == 0:
            self._turn = -1
        if not self.layout.turns:
            return
        turn = turn * len(self.layout.turns) // self._turns
        if turn != self._turn:
            self._turn = turn
            self._look(turn)

    def end(self) -> None:
        """Its weights may differ from now on, or can't be hashed."""
        self.ended, self._open, self.layout = True, [], None
        self._program.replicas.tell_files()

    def _look(self, turn) -> None:
        layout, ops = self.layout, self._program.attached.ops
        parts = layout.turns[turn]
        weights = [own_part(layout.parameter(number)) for number, _, _ in parts]
        gradients = [own_part(weight.grad) for weight in map(layout.parameter, layout.witnesses) if weight is not None]
        gradients = [gradient for gradient in gradients if gradient is not None and is_plain(gradient)]
        if any(weight is None for weight in weights):
            return
        hashes = ops.hashes_of_parts(weights, [begin for _, begin, _ in parts], [size for _, _, size in parts])
        witness = ops.hashes_of_parts(gradients, [0] * len(gradients), [WITNESS] * len(gradients))
        if len(hashes) != len(parts):
            self.end()
            return
        told = _HEADER.pack(layout.fingerprint, self._updates, turn, _joined(witness)) + struct.pack(f"<{len(hashes)}q", *hashes)
        slot = self._looks % exchange.SLOTS
        self._looks += 1
        self._exchange.put(slot, told)
        if self._rank == min(self.ranks):
            self._open = [*self._open[2 - exchange.SLOTS :], _Look(slot, told, layout, turn, ops.step())]

    def _compare(self) -> None:
        waiting = []
        for look in self._open:
            told = self._exchange.all(look.slot)
            if told is None or any(_HEADER.unpack_from(each)[1] < _HEADER.unpack_from(look.told)[1] for each in told):
                waiting.append(look)  # some rank has not reached it yet
            elif look.as_others(told):
                self._judge(look, [struct.unpack_from(f"<{len(look.parts)}q", each, _HEADER.size) for each in told])
        self._open = waiting

    def _judge(self, look, hashes) -> None:
        layout = look.layout
        for at, (weight, begin, _) in enumerate(look.parts):
            self._found.part(weight, begin, layout.trained[weight], [of_rank[at] for of_rank in hashes])
        news = self._found.news(self._updates)
        if news is None:
            return
        known = self._program.numbers.of(layout.parameter(news.first))
        name = known[1] if known is not None else layout.names[news.first]  # as files of steps call it
        line = headline(news, name, self.ranks, self._turns, len(layout.names))
        self._program.attached.replicas_differ(look.step, news.ranks, name, line)


class _Look(NamedTuple):
    """Hashes that this rank has left and not yet compared with those of the other ranks."""

    slot: int
    told: bytes
    layout: Layout
    turn: int
    step: int

    @property
    def parts(self):
        return self.layout.turns[self.turn]

    def as_others(self, told) -> bool:
        """Whether the ranks hashed the same weights after the same gradients."""
        return bool(_HEADER.unpack_from(self.told)[3]) and all(
            len(each) == len(self.told) and each[: _HEADER.size] == self.told[: _HEADER.size] for each in told
        )


def _joined(hashes) -> int:
    """One number for several; 0 if all of them are 0: zero gradients are equal whether they were summed or not."""
    if not any(hashes):
        return 0
    return int.from_bytes(hashlib.blake2b(struct.pack(f"<{len(hashes)}q", *hashes), digest_size=7).digest(), "little") + 1


def _alike(module) -> bool:
    """Whether the coming update is the same on all ranks, as far as the module shows."""
    return (
        module.require_forward_param_sync
        and not module._join_config.enable
        and module.mixed_precision is None
        and all(getattr(hook, "__name__", "") in _HOOKS and str(hook.__module__).startswith("torch.") for hook, _ in module._comm_hooks)
    )


class Replicas:
    """The replicas of one program."""

    def __init__(self, program):
        self._program = program
        self._turns = 0 if program.attached.rehearsal is not None else program.attached.settings.compare_replicas
        self._known = []  # _Replica with the weak module
        self._told = None

    def before_update(self, weights) -> None:
        """The optimizer of these (entries of Written) is about to write."""
        if not probe.replicated or not self._turns or in_backward():
            return
        try:
            kept = weights.replicas
            if kept is None or kept[0] != probe.times_replicated:
                kept = weights.replicas = (probe.times_replicated, self._of(set(weights.ids)))
            for replica in kept[1]:
                replica.before_update()
        except Exception as problem:  # noqa: BLE001 (a store whose server is gone, a PyTorch that keeps its things elsewhere)
            self._turns = 0
            self._program.attached.say_once(
                f"replicas are no longer compared: {type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
            )

    def _of(self, ids) -> list:
        """The replicas whose weights are among these."""
        self._known = [entry for entry in self._known if entry[0]() is not None]
        found = []
        for module in (each() for each in probe.replicated):
            if module is None or ids.isdisjoint(map(id, module.parameters())):
                continue
            replica = next((replica for known, replica in self._known if known() is module), None)
            if replica is None:
                replica = _Replica(module, self._program, self._turns)
                self._known.append((weakref.ref(module), replica))
            found.append(replica)
        return found

    def tell_files(self) -> None:
        """Writes into files of steps which weights should be the same, for comparing the files of several ranks."""
        held = [(known(), replica) for known, replica in self._known if known() is not None]
        ranks = {tuple(replica.ranks) for _, replica in held if replica.layout is not None}
        managed = set().union(*(replica.layout.ids for _, replica in held if replica.layout is not None))
        others = "\n".join(sorted(self._program.numbers.names_but(managed)))
        told = (" ".join(map(str, *ranks)), others) if len(ranks) == 1 and len(others) < MOST_OTHERS else ("", "")
        if told != self._told:
            self._told = told
            self._program.attached.ops.note_replicas(*told)
