"""How data is cut into shards, and which of them exist already: this makes preparing resumable.

Shards depend only on the data and the settings, not on the number of processes that make them. Beside a shard, shard-00000.json
records what happened to its lines, until the manifest, which is written last, holds it all."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import os

from .model_folder import Refused
from .shard_files import MANIFEST, PART, VERSION, write_json

PLAN = "plan.json"
LEAST, MOST, MANY = 256 << 10, 16 << 20, 32  # bytes of data in a shard; number of shards, where that is between the two


@dataclasses.dataclass
class Cut:
    """The lines of one shard."""

    number: int
    file: int  # index into the list of data files
    path: str
    begin: int  # bytes
    end: int
    first_line: int  # from 1

    def name(self) -> str:
        return f"shard-{self.number:05d}"

    def lines(self):
        """(number, bytes) pairs."""
        with open(self.path, "rb") as file:
            file.seek(self.begin)
            number = self.first_line
            while file.tell() < self.end:
                yield number, file.readline()
                number += 1


def cut(paths: list, most_lines: int) -> tuple:
    """([Cut], [SHA-256 of each file]); a shard has at most that many lines."""
    sizes = []
    for path in paths:
        if not os.path.isfile(path):
            raise Refused(f"{path}: {'a folder' if os.path.isdir(path) else 'no such file'}; give --data files of JSON lines")
        sizes.append(os.path.getsize(path))
    size = min(max(sum(sizes) // MANY, LEAST), MOST)
    cuts, hashes = [], []
    for number, path in enumerate(paths):
        hashed = hashlib.sha256()
        begin, line, at, next_line = 0, 1, 0, 1
        with open(path, "rb") as file:
            for content in file:
                hashed.update(content)
                at += len(content)
                next_line += 1
                if at - begin >= size or next_line - line >= most_lines:
                    cuts.append(Cut(len(cuts), number, path, begin, at, line))
                    begin, line = at, next_line
        if at > begin:
            cuts.append(Cut(len(cuts), number, path, begin, at, line))
        hashes.append(hashed.hexdigest())
    if not cuts:
        raise Refused(f"{', '.join(paths)}: no lines; give --data files of JSON lines")
    return cuts, hashes


def key_of(settings: dict, hashes: list, tokenizer: dict) -> str:
    """Equal if the same shards would be made."""
    settings = {name: value for name, value in settings.items() if name != "skip_broken"}
    return hashlib.sha256(json.dumps([VERSION, settings, hashes, tokenizer], sort_keys=True).encode()).hexdigest()


def _read(path: str):
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}


@contextlib.contextmanager
def claimed(out: str):
    """The folder, created if missing, claimed for one process."""
    os.makedirs(out, exist_ok=True)
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"{out}: another process is preparing it; wait for it, or choose another --out") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(folder)


def begin(out: str, key: str, overwrite: bool):
    """Prepares the claimed folder. Returns the manifest if everything exists already; None if there is work to do."""
    manifest, plan = _read(os.path.join(out, MANIFEST)), _read(os.path.join(out, PLAN))
    if manifest is not None and manifest.get("key") == key:
        return manifest
    if manifest is not None and not overwrite:
        raise Refused(f"{out} holds data of other settings, another tokenizer or other lines; choose another --out, or give --overwrite", 2)
    if manifest is None and plan is None and os.listdir(out):
        raise Refused(f"{out} is not empty and holds no prepared data; choose another --out", 2)
    unfinished = glob.glob(os.path.join(glob.escape(out), "*" + PART))
    if plan is None or plan.get("key") != key:  # shards that were begun with other data or settings can't be used
        unfinished += [os.path.join(out, MANIFEST), *glob.glob(os.path.join(glob.escape(out), "shard-*"))]
    for path in unfinished:  # the manifest goes before its shards: a folder with one is complete
        if os.path.exists(path):
            os.unlink(path)
    write_json(os.path.join(out, PLAN), {"format": "nanquest.plan", "version": VERSION, "key": key})
    return None


def done(out: str, shard: Cut):
    """The record of a complete shard; None if it has to be made."""
    report = _read(os.path.join(out, shard.name() + ".json"))
    try:
        size = os.path.getsize(os.path.join(out, shard.name() + ".bin"))
    except OSError:
        return None
    return report if report and report.get("bytes") == size else None


def finish(out: str, manifest: dict) -> None:
    write_json(os.path.join(out, MANIFEST), manifest)
    for path in glob.glob(os.path.join(glob.escape(out), "shard-*.json")) + [os.path.join(out, PLAN)]:
        if os.path.exists(path):
            os.unlink(path)
