"""The samples of a step: indices that a DataLoader of torch draws, followed to the model that is called with their batch.

Nothing is guessed: if a batch can't be recognised, its ids are unknown. Samples in a quarantine are left out when they are drawn. An error
in here never reaches the program: from then on nothing is followed.
"""

from __future__ import annotations

import collections
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..base.rank import place_in_group
from ..base.say import say
from ..pytorch import private

KEPT = 256  # how many batches are remembered by their memory
MOST_TENSORS = 64  # largest number of tensors of one batch


def label(dataset) -> str:
    """The name of a data set beside its indices: "Rows[240]"."""
    try:
        return f"{type(dataset).__name__}[{len(dataset)}]"
    except Exception:  # noqa: BLE001 (__len__ is the program's)
        return type(dataset).__name__


def _id(index) -> str:
    return str(index) if type(index) is int else "".join(str(index).split())


def _memory(value, depth=0):
    """The storages of the tensors in it."""
    if isinstance(value, torch.Tensor):
        try:
            yield StorageWeakRef(value.untyped_storage())
        except (RuntimeError, NotImplementedError):  # it has none
            return
    elif depth < 4 and isinstance(value, (collections.abc.Mapping, list, tuple)):
        for each in value.values() if isinstance(value, collections.abc.Mapping) else value:
            yield from _memory(each, depth + 1)


class Batch:
    """Samples that were drawn together. Holds none of their memory."""

    def __init__(self, dataset: str, index, one_each: bool = False):
        self.dataset, self.places = dataset, ()
        self._index = tuple(index) if isinstance(index, (list, tuple)) else (index,)
        self.one_each = one_each  # each id is one sample that the loader put into the batch

    @property
    def ids(self) -> list:
        return [_id(each) for each in self._index]

    def lies_in(self, data) -> None:
        self.places = [place for place, _ in zip(_memory(data), range(MOST_TENSORS))]


class _Iteration:
    """One pass of a DataLoader over its data set."""

    def __init__(self, iterator):
        self.of = iterator._sampler_iter
        self.dataset = label(iterator._dataset)
        self.in_order = getattr(iterator, "_in_order", True)
        self.one_each = getattr(iterator, "_auto_collation", False)
        self.drawn = collections.deque()  # Batches that were not given to the program yet
        self.given = collections.deque(maxlen=KEPT)  # … and not taken by a callback
        self.since_pass = 0  # batches given since the model was called
        self.by_turns = True  # at most one
        self.last, self.owed = None, 0  # indices of batches that were skipped completely on one of several ranks


class Drawing:
    """Follows the samples of this process. `quarantine` may be None: then nothing is skipped."""

    def __init__(self, quarantine):
        self.quarantine = quarantine
        self.datasets = set()  # labels of data sets from which indices were drawn
        self._iterations = weakref.WeakKeyDictionary()
        self._recent, self._at = collections.deque(), {}  # Batches, and those by the memory of their tensors
        self._broken = ""  # why nothing is followed any more
        self._fresh = []  # (_Iteration, Batch) given to the program since the model was called
        self._current = []  # Batches of the last call
        self._taken = []  # Batches of the coming step, set by a callback
        self._step, self._batches, self._why_not, self._told = None, [], "", False

    # Where batches are drawn and given.

    def _of(self, iterator) -> _Iteration:
        found = self._iterations.get(iterator)
        if found is None or found.of is not iterator._sampler_iter:
            found = self._iterations[iterator] = _Iteration(iterator)
        return found

    def draws(self, iterator, own):
        """Changes what `_next_index` of a DataLoader's iterator returned."""
        if self._broken or iterator._dataset_kind != private.dataset_kind.Map:
            return own(iterator)
        now = self._safely(self._of, iterator)
        if now is None:
            return own(iterator)
        while True:
            try:
                index = own(iterator)
            except StopIteration:
                if not now.owed or now.last is None:
                    raise
                now.owed -= 1
                index = now.last
            else:
                if self.quarantine is not None and torch.is_grad_enabled():  # an evaluation keeps all of its samples
                    index = self._safely(self.quarantine.left_of, now.dataset, index, _id, otherwise=index)
            if index is not None:
                now.last = index
                self._safely(self._notes, now, index)
                return index
            # Ranks that train together must make the same number of steps.
            now.owed += place_in_group()[1] > 1

    def _safely(self, what, *arguments, otherwise=None):
        try:
            return what(*arguments)
        except Exception as problem:  # noqa: BLE001 (the program must go on)
            self._broken = f"following the batches failed: {type(problem).__name__}: {problem}"
            if self.quarantine is not None:
                say(f"no more samples are left out: {self._broken}")
            return otherwise

    def _notes(self, now, index) -> None:
        self.datasets.add(now.dataset)
        now.drawn.append(Batch(now.dataset, index, now.one_each))

    def gives(self, iterator, data) -> None:
        """The iterator has returned this; None if it raised instead."""
        if not self._broken:
            self._safely(self._gives, iterator, data)

    def _gives(self, iterator, data) -> None:
        now = self._iterations.get(iterator)
        if now is None or not now.drawn:
            return
        batch = now.drawn.popleft()
        if data is None or not now.in_order or not torch.is_grad_enabled():
            return
        batch.lies_in(data)
        self._remember(batch)
        now.given.append(batch)
        now.since_pass += 1
        now.by_turns = now.by_turns and now.since_pass == 1
        self._fresh.append((now, batch))
        del self._fresh[:-KEPT]

    def _remember(self, batch) -> None:
        self._recent.append(batch)
        self._at.update((place.cdata, (place, batch)) for place in batch.places)
        if len(self._recent) > KEPT:
            oldest = self._recent.popleft()
            for place in oldest.places:
                if self._at.get(place.cdata, (None, None))[1] is oldest:
                    del self._at[place.cdata]

    # How batches are used.

    def _called_with(self, values) -> list:
        found = (self._at.get(place.cdata) for place in _memory(values))
        return list(dict.fromkeys(batch for place, batch in filter(None, found) if not place.expired()))

    def passes(self, step: int, values) -> list:
        """A model that trains is called with `values` in this step. Returns the ids that are new to the step, one for each sample of its
        batch; none if they are not known to be that."""
        if self._broken:
            return []
        if step != self._step:
            self._step, self._batches, self._why_not, self._told = step, self._taken, "", bool(self._taken)
            self._taken = []
        if self._told:
            return []
        found, fresh = self._called_with(values), self._fresh
        if not found and fresh:
            found = [batch for now, batch in fresh if now.by_turns]
            if not found:
                self._why_not = "batches are drawn ahead, and copied before the model gets them"
        elif not found:
            found = self._current
        for now, _ in fresh:
            now.since_pass = 0
        self._fresh, self._current = [], found
        new = [batch for batch in found if batch not in self._batches]
        self._batches += new
        return new[0].ids if len(new) == 1 and new[0].one_each else []

    def takes(self, loader, count: int) -> list:
        """A Trainer says that the coming step uses the next `count` batches of this loader. Returns their ids."""
        sampler = getattr(loader, "_index_sampler", None)
        found = [now for iterator, now in list(self._iterations.items()) if iterator._index_sampler is sampler and now.given]
        if not found:
            return []
        given = found[-1].given
        self._taken = [given.popleft() for _ in range(min(count, len(given)))]
        return [each for batch in self._taken for each in batch.ids]

    @staticmethod
    def named(ids) -> Batch:
        """Drops a batch whose samples the program has named itself: those ids are not indices."""
        return Batch("nanquest.batch", list(ids))

    def of_step(self, step: int) -> tuple:
        """(batches of the step, why they are not known)."""
        if self._broken:
            return [], self._broken
        if step != self._step:
            self.passes(step, ())
        why_not = self._why_not or f"no DataLoader of torch {'drew them' if self.datasets else 'draws them by index'}"
        return self._batches, "" if self._batches else why_not


def _around_next_index(drawing):
    def around(own):
        def _next_index(self):
            return drawing.draws(self, own)

        return _next_index

    return around


def _around_next(drawing):
    def around(own):
        def __next__(self):
            try:
                data = own(self)
            except StopIteration:
                raise
            except BaseException:
                drawing.gives(self, None)
                raise
            drawing.gives(self, data)
            return data

        return __next__

    return around


def install(patches, drawing: Drawing) -> None:
    if private.loader_iterator is None or private.dataset_kind is None:
        return
    patches.put(private.loader_iterator, "_next_index", _around_next_index(drawing))
    patches.put(private.loader_iterator, "__next__", _around_next(drawing))
