"""The files of the program that were looked at when they were written and held no NaN and no Inf, by series: files whose names differ in
digits only."""

from __future__ import annotations

import os
import re

MOST_KEPT = 64  # of a series; older ones have usually been removed


def series_of(path: str) -> str:
    return re.sub(r"\d+", "#", os.path.abspath(path))


class _File:
    def __init__(self, path: str):
        self.path = os.path.abspath(path)
        self._is = self._identity(self.path)  # None: it is written later (through a buffer)

    @staticmethod
    def _identity(path: str):
        try:
            it = os.stat(path)
            return it.st_dev, it.st_ino
        except OSError:
            return None

    def where(self) -> str:
        """Its present path, "" if it is gone. A file is often written under another name and then renamed, alone or with its folder."""
        now = self._identity(self.path)
        if now is not None and self._is in (None, now):
            return self.path
        if self._is is None or now is not None:
            return ""
        folder, name = os.path.split(self.path)
        above = os.path.dirname(folder)
        try:
            beside = [os.path.join(folder, other) for other in os.listdir(folder)] if os.path.isdir(folder) else []
            beside += [os.path.join(above, other, name) for other in os.listdir(above)]
        except OSError:
            return ""
        return next((path for path in beside if self._identity(path) == self._is), "")


class CleanFiles:
    def __init__(self):
        self._series = {}  # name of a series -> [_File], oldest first
        self._gone_bad = set()  # series of which the newest write was bad

    def clean(self, path: str) -> None:
        """This file was written and is clean."""
        series = series_of(path)
        files = [file for file in self._series.get(series, ()) if file.path != os.path.abspath(path)]
        self._series[series] = [*files, _File(path)][-MOST_KEPT:]
        self._gone_bad.discard(series)

    def bad(self, path: str, written: bool) -> None:
        """What goes, or would go, into this file is bad."""
        series = series_of(path)
        self._gone_bad.add(series)
        if written:
            self._series[series] = [file for file in self._series.get(series, ()) if file.path != os.path.abspath(path)]

    def last(self, path: str) -> str:
        """The newest clean file of the same series that is still there, "" without one."""
        return self._last(series_of(path))

    def _last(self, series: str) -> str:
        return next((there for file in reversed(self._series.get(series, ())) if (there := file.where())), "")

    def needed(self, all_series: bool) -> list:
        """The last clean file of each series whose newest write was bad, or of all series."""
        return [there for series in (self._series if all_series else self._gone_bad) if (there := self._last(series))]
