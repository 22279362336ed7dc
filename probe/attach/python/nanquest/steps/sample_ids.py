"""Sample ids, from the various forms in which programs have them."""

from __future__ import annotations

import collections

KEYS = (
    "id",
    "ids",
    "idx",
    "index",
    "indices",
    "sample_id",
    "sample_ids",
    "sample_idx",
    "example_id",
    "example_ids",
    "uid",
    "uids",
    "guid",
    "guids",
    "key",
    "keys",
    "__key__",
)


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
