"""Sample ids, from whatever a program has them in."""

from __future__ import annotations

import collections

KEYS = ("id", "ids", "idx", "index", "indices", "sample_id", "sample_ids", "sample_idx", "example_id", "example_ids",
        "uid", "uids", "guid", "guids", "key", "keys", "__key__")


def as_names(ids):
    """One string per sample, or None if `ids` holds none."""
    if isinstance(ids, collections.abc.Mapping):
        ids = next((ids[key] for key in KEYS if key in ids), None)
    if hasattr(ids, "tolist"):  # a tensor or an array
        ids = ids.tolist()
    if ids is None or isinstance(ids, bytes):
        return None
    if isinstance(ids, (str, int)):
        return [str(ids)]
    try:
        return [str(i) for i in ids]
    except TypeError:
        return None


class SampleOrder:
    """The order in which a data loader draws the samples of its dataset, noted as it draws them.

    Workers fetch ahead, but batches come in the order in which their indices were drawn.
    """

    def __init__(self, own):
        self._own = own
        self._drawn = collections.deque()

    @staticmethod
    def of(loader):
        """Notes the order of `loader` from its next pass on; None if it draws no indices in batches."""
        batches = getattr(loader, "batch_sampler", None)
        while hasattr(batches, "batch_sampler"):  # shards of a distributed run wrap each other
            batches = batches.batch_sampler
        own = getattr(batches, "sampler", None)
        if isinstance(own, SampleOrder):
            return own
        if own is None or not isinstance(getattr(batches, "batch_size", None), int):
            return None
        order = SampleOrder(own)
        order.batch_size = batches.batch_size
        batches.sampler = order
        return order

    def __iter__(self):
        drawn = self._drawn = collections.deque()
        for index in self._own:
            drawn.append(index)
            yield index

    def __len__(self):
        return len(self._own)

    def __getattr__(self, name):
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)

    def take(self, batches: int) -> list:
        """Indices of the next so many batches, fewer at the end of a pass."""
        count = min(batches * self.batch_size, len(self._drawn))
        return [self._drawn.popleft() for _ in range(count)]
