"""The list of muted incidents of a project: a JSON list of operation, module and cause."""

from __future__ import annotations

import json
import sys


def entries(path: str) -> list:
    """The entries of the file; ValueError if it can't be read. A missing file has none."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if isinstance(found, list) and all(
            isinstance(each, dict) and isinstance(each.get("op"), str) and isinstance(each.get("module"), str) for each in found
        ):
            return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        pass
    raise ValueError(f"{path} is no list of muted incidents; mend it, or remove it")


def muted_places(path: str) -> list:
    """[operation, module] of each entry; the probe does not know causes. A file that can't be read mutes nothing, and a line on stderr
    says so."""
    try:
        return [[each["op"], each["module"]] for each in entries(path)]
    except ValueError as problem:
        print(f"nanquest: nothing is muted: {problem}", file=sys.stderr)
        return []
