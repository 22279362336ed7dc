"""The shards of prepared data are made, in processes beside each other; those that are there already stay."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import types
import zlib
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ..base.say import say
from . import plan, shard_files
from .model_folder import BAD_FILE, Refused
from .text_samples import Broken

# In the worker processes: they are forked, so they have the tokenizer.
_worker = types.SimpleNamespace(maker=None)  # a Maker or PictureMaker: workers are forked after it is set


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles the terminal's Ctrl-C


def _make(shard: plan.Cut, out: str) -> dict:
    """Writes a shard; returns what happened to its lines. Broken names file and line."""
    report = {"file": shard.file, "lines": 0, "skipped": 0, "cut": 0, "split": 0, "reasons": []}
    samples, waiting = [], []
    try:
        for line in shard.lines():
            report["lines"] += 1
            waiting.append(line)
            if len(waiting) == _worker.maker.at_once:
                samples += _worker.maker.samples(waiting, report, shard.path)
                waiting = []
        samples += _worker.maker.samples(waiting, report, shard.path)
    except Broken as problem:
        raise Broken(f"{shard.path}:{problem}") from None
    content = _worker.maker.shard(samples, report)
    report.update(bytes=len(content), crc32=zlib.crc32(content))
    shard_files.write_json(os.path.join(out, shard.name() + ".json"), report)
    shard_files.write_whole(os.path.join(out, shard.name() + ".bin"), content)
    return report


class _Progress:
    """Progress: one line that is rewritten on a terminal, otherwise a few lines."""

    def __init__(self, shards: int, unit: str):
        self._shards, self._unit, self._done, self._made, self._began, self._told = shards, unit, 0, 0, time.monotonic(), 0.0
        self._moves = sys.stderr.isatty()

    def add(self, report: dict) -> None:
        self._done += 1
        self._made += report[self._unit]
        now = time.monotonic()
        if self._moves:
            print(f"\r{self._done}/{self._shards} shards, {self._made} {self._unit}", end="", file=sys.stderr, flush=True)
        elif now - self._told >= 10 and now - self._began >= 10:
            self._told = now
            say(f"{self._done} of {self._shards} shards, {self._made} {self._unit}")

    def close(self) -> None:
        if self._moves and self._done:
            print(file=sys.stderr)


def make_all(cuts: list, maker, options) -> list:
    """The reports of all shards, in order. If lines are broken, the first one of the data is reported."""
    _worker.maker = maker
    reports = [plan.done(options.out, shard) for shard in cuts]
    waiting = [shard for shard, report in zip(cuts, reports) if report is None]
    if len(waiting) < len(cuts):
        say(f"{len(cuts) - len(waiting)} of {len(cuts)} shards are there already")
    progress = _Progress(len(waiting), maker.unit)
    pool = ProcessPoolExecutor(
        min(options.processes or len(os.sched_getaffinity(0)), max(len(waiting), 1)), multiprocessing.get_context("fork"), _begin_worker
    )
    try:
        for shard, made in [(shard, pool.submit(_make, shard, options.out)) for shard in waiting]:
            reports[shard.number] = made.result()
            progress.add(reports[shard.number])
    except BrokenProcessPool:
        raise Refused(
            "a process was killed, maybe for want of memory; the same command goes on, --processes 1 takes the least", BAD_FILE
        ) from None
    finally:
        progress.close()
        pool.shutdown(cancel_futures=True)
    return reports
