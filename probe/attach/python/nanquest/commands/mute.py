"""`nanquest mute`: adds an incident to the list of muted ones, shows the list, or removes an entry."""

from __future__ import annotations

import argparse
import json
import os
import subprocess

from ..base import programs
from ..base.muted import entries
from ..base.settings import Settings

PATIENCE = 15 * 60  # seconds for the diagnosis of a snapshot


def _whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return number


def add_to(verbs) -> None:
    """The verb and its options."""
    parser = verbs.add_parser(
        "mute",
        help="do not report this incident again",
        description="Later runs count incidents of the same operation and module, but do not save or print them. Operation and module are "
        "only known in steps whose values are checked: all steps at level watch; at level trace the first ones, those of --watch-percent, and "
        "those after an incident. The cause is not known while a program runs, so another cause in the same place is muted too.",
    )
    parser.add_argument(
        "what", nargs="?", metavar="SNAPSHOT|VERDICT", help="an incident's file, or what nanquest-replay said of it (.json)"
    )
    parser.add_argument("--mute-file", default=Settings.mute_file, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--list", action="store_true", help="list what is muted, with numbers")
    parser.add_argument("--remove", type=_whole, metavar="N", help="remove entry N")


def _verdict(path: str) -> dict:
    """The entry for a verdict's file, or for a snapshot, which is diagnosed first."""
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not there; give an incident's file or its verdict")
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    try:
        done = subprocess.run(
            [*programs.command("nanquest-replay"), "--quiet", path, "--json"],
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
        if done.returncode in (0, 1):
            return json.loads(done.stdout)
        raise ValueError(done.stderr.strip() or f"{path} can't be replayed")
    except (programs.Missing, OSError, subprocess.TimeoutExpired) as problem:
        raise ValueError(str(problem)) from None


def _write(path: str, found: list) -> None:
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2)
        file.write("\n")
    os.replace(f"{path}.part", path)


def _words(each: dict) -> str:
    return f"{each['op']} in {each['module'] or '(outside any module)'}, {each.get('cause', 'UNKNOWN')}"


def command(what, path: str, listed: bool, number) -> int:
    """`nanquest mute`."""
    found = entries(path)
    if number is not None:
        if not 1 <= number <= len(found):
            raise ValueError(f"{path} has no number {number}; nanquest mute --list shows them")
        print(f"no longer muted: {_words(found.pop(number - 1))}")
        _write(path, found)
    elif what:
        try:
            culprit = (verdict := _verdict(what)).get("culprit") or {}
        except (OSError, AttributeError, json.JSONDecodeError) as problem:
            raise ValueError(f"{what} is no verdict: {problem}") from None
        new = {"op": culprit.get("op") or "", "module": culprit.get("module") or "", "cause": verdict.get("cause", "UNKNOWN")}
        if not new["op"]:
            raise ValueError(f"{what} names no operation, so there is nothing to mute")
        if new not in found:
            _write(path, [*found, new])
        print(f"muted in {path}: {_words(new)}; while a program runs its cause is not known: another one in the same place is muted too")
    elif listed:
        for n, each in enumerate(found, 1):
            print(f"{n}  {_words(each)}")
    else:
        raise ValueError("give an incident's file or its verdict, --list, or --remove N")
    return 0
