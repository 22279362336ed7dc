"""The bytes of prepared data: a folder of shards and their manifest, read by the trainer (trainer/data/prepared_data.h). docs/data.md
describes both. A change of meaning increases VERSION there, here and in trainer/data/prepared_file.h."""

from __future__ import annotations

import dataclasses
import json
import os
import struct

VERSION = 1
MAGIC = b"nqtokens"
HEAD = struct.Struct("<8sIIQQQ24x")  # magic, version, bytes of a token, tokens, samples, rows
PICTURES_MAGIC = b"nqimages"
PICTURES_HEAD = struct.Struct("<8sIIQIII28x")  # magic, version, bytes of a pixel's value, samples, channels, height, width
COLOURS = 256  # values of a channel that a byte can stand for
MANIFEST = "manifest.json"
PART = ".part"


@dataclasses.dataclass
class Sample:
    """A line's tokens, or a part of them. `learned`: 1 for each token that counts in the loss."""

    line: int
    tokens: list
    learned: list


@dataclasses.dataclass
class Picture:
    """A line's picture as the model receives it, float32 [channels, height, width]."""

    line: int
    file: str
    label: int
    pixels: object


def write_whole(path: str, content: bytes) -> None:
    """Writes the file completely or not at all."""
    try:
        with open(path + PART, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + PART, path)
    except OSError:
        try:
            os.unlink(path + PART)
        except OSError:
            pass
        raise


def write_json(path: str, content: dict) -> None:
    write_whole(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _padded(content: bytes) -> bytes:
    """Padded to a multiple of 8, so that what follows can be used in place."""
    return content + bytes(-len(content) % 8)


def shard_bytes(rows: list) -> bytes:
    """A shard of `rows`, each a list of samples."""
    import numpy as np

    samples = [sample for row in rows for sample in row]
    lengths = [len(sample.tokens) for sample in samples]
    tokens = np.fromiter((t for sample in samples for t in sample.tokens), np.uint32, sum(lengths))
    learned = np.fromiter((b for sample in samples for b in sample.learned), np.uint8, sum(lengths))
    if not tokens.size or int(tokens.max()) < 1 << 16:
        tokens = tokens.astype(np.uint16)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]).astype("<u8")
    firsts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.uint64)]).astype("<u8")
    lines = np.array([sample.line for sample in samples], "<u4")
    head = HEAD.pack(MAGIC, VERSION, tokens.itemsize, tokens.size, len(samples), len(rows))
    little = tokens.astype(tokens.dtype.newbyteorder("<"))
    return b"".join(
        [head, _padded(little.tobytes()), _padded(learned.tobytes()), starts.tobytes(), firsts.tobytes(), _padded(lines.tobytes())]
    )


def packed(samples: list, room: int) -> list:
    """Rows of whole samples, none longer than `room` tokens: each sample goes into the first of the last 64 open rows where
    it fits."""
    rows, is_open = [], []  # an open row: [tokens left, row]
    for sample in samples:
        size = len(sample.tokens)
        place = next((row for row in is_open if row[0] >= size), None)
        if place is None:
            place = [room, []]
            rows.append(place[1])
            is_open.append(place)
            if len(is_open) > 64:
                is_open.pop(0)
        place[0] -= size
        place[1].append(sample)
    return rows


def _palette(pictures: list, channels: int):
    """([channels, COLOURS] of the values that occur, [picture: a byte for each of its values]); None if there are more. Lossless."""
    import numpy as np

    known = [np.zeros(0, np.float32)] * channels
    for pixels in pictures:
        for channel in range(channels):
            values = pixels[channel].ravel()
            at = np.searchsorted(known[channel], values)
            new = at == known[channel].size
            new |= known[channel][np.where(new, 0, at)] != values if known[channel].size else True
            if new.any():
                known[channel] = np.union1d(known[channel], values[new])
                if known[channel].size > COLOURS or not np.isfinite(known[channel]).all():
                    return None
    codes = [
        np.stack([np.searchsorted(known[channel], pixels[channel]) for channel in range(channels)]).astype(np.uint8) for pixels in pictures
    ]
    table = np.zeros((channels, COLOURS), "<f4")
    for channel in range(channels):
        table[channel, : known[channel].size] = known[channel]
    return table, codes


def picture_shard_bytes(pictures: list, shape: list) -> bytes:
    """A shard of pictures of that shape: processed pixels have few distinct values, so it stores a byte for each and a table of them."""
    import numpy as np

    names = [picture.file.encode("utf-8", "replace") for picture in pictures]
    ends = np.concatenate([[0], np.cumsum([len(name) for name in names], dtype=np.uint64)]).astype("<u8")
    found = _palette([picture.pixels for picture in pictures], shape[0])
    table, values = found if found else (None, [picture.pixels.astype("<f4") for picture in pictures])
    head = PICTURES_HEAD.pack(PICTURES_MAGIC, VERSION, 1 if found else 4, len(pictures), *shape)
    return b"".join(
        [
            head,
            _padded(np.array([picture.line for picture in pictures], "<u4").tobytes()),
            _padded(np.array([picture.label for picture in pictures], np.uint8).tobytes()),
            ends.tobytes(),
            _padded(b"".join(names)),
            table.tobytes() if found else b"",
            _padded(b"".join(value.tobytes() for value in values)),
        ]
    )
