"""Kinds of values that a setting may have: how each is read from text and checked."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

from .sizes import size_in


@dataclasses.dataclass(frozen=True)
class Kind:
    must: str  # "must be a whole number of at least 0"
    parse: Callable  # from text; ValueError if that is impossible
    problem: Callable  # of a value: "" if it is valid, otherwise what is wrong
    metavar: str = ""
    values: tuple = ()  # all allowed values, if they are few
    is_path: bool = False
    text: Callable = str  # type of the result of `parse`

    def read(self, text: str):
        """The value; ValueError that says what it must be."""
        try:
            value = self.parse(text)
        except ValueError:
            raise ValueError(self.must) from None
        if problem := self.problem(value):
            raise ValueError(problem)
        return value


def whole(least: int = 0) -> Kind:
    must = f"must be a whole number of at least {least}"
    return Kind(must, int, lambda value: "" if type(value) is int and value >= least else must, "N")


def whole_or_none() -> Kind:
    """A whole number, or "": nothing was set."""
    number = whole()
    return dataclasses.replace(
        number, parse=lambda text: text and int(text), problem=lambda value: "" if value == "" else number.problem(value)
    )


def share() -> Kind:
    must = "must be a number above 0 and at most 1"
    return Kind(must, float, lambda value: "" if type(value) in (int, float) and 0 < value <= 1 else must, "X")


def one_of(*values) -> Kind:
    must = f"must be {', '.join(values[:-1])} or {values[-1]}"
    return Kind(must, str, lambda value: "" if value in values else must, values=values)


def step_numbers(text: str) -> tuple:
    """(0, 5) of "0,5"; ValueError for anything else."""
    return tuple(int(number) for number in text.split(",") if number.strip())


def steps() -> Kind:
    must = "must be step numbers like 0,5, counted from 0"
    return Kind(
        must,
        step_numbers,
        lambda value: "" if all(type(step) is int and step >= 0 for step in value) else must,
        "N,M,...",
        text=lambda value: ",".join(map(str, value)),
    )


def size() -> Kind:
    must = "must be a size like 20G"

    def problem(value):
        try:
            return "" if not value or size_in(value) else must
        except ValueError:
            return must

    return Kind(must, str, problem, "SIZE")


def _path(must: str, metavar: str, problem: Callable, may_be_empty: bool = True) -> Kind:
    def wrong(value):
        if not isinstance(value, (str, os.PathLike)):
            return must
        path = os.fspath(value)
        return problem(os.path.abspath(path)) if path else "" if may_be_empty else must

    return Kind(must, str, wrong, metavar, is_path=True, text=os.path.abspath)


def run_directory() -> Kind:
    return _path("must be the path of a directory", "DIR", lambda path: "", may_be_empty=False)


def file_to_read() -> Kind:
    return _path("must be the path of a file", "FILE", lambda path: "")


def file_to_write() -> Kind:
    def problem(path):
        if os.path.isfile(path):
            return "" if os.access(path, os.R_OK | os.W_OK) else "this file can't be read and written"
        if os.path.exists(path):
            return "this is not a file"
        folder = os.path.dirname(path)
        return "" if os.path.isdir(folder) and os.access(folder, os.W_OK) else f"no file can be made in {folder}"

    return _path("must be the path of a file", "FILE", problem)


def folder_to_write() -> Kind:
    must = "must be a directory in which files can be made"
    return _path(must, "DIR", lambda path: "" if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK) else must)
