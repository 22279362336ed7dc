"""`nanquest explain RUN`: the newest incident of a run: what it was, why, and what to do; and what else the run found.

Where replay has been at it, its verdict is read and nothing is started; else nanquest-replay makes one, which needs PyTorch."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

from ..base import programs
from ..base.run_directory import shorter
from . import audit
from .explain import incidents

FORMAT, VERSION = "nanquest.explain", 1
NOTHING, FOUND, USAGE, BAD_FILE = 0, 1, 2, 3
SHOWN = 20  # findings
TRIES = "rehearsed with other learning rates, the program itself says what would have avoided it"


def add_to(verbs) -> None:
    sub = verbs.add_parser(
        "explain",
        help="the newest incident of a run: cause, evidence, fix, and the commands that come next",
        description="Exit code 0: nothing was found; 1: an incident is explained, or findings are listed; 2: no such run; 3: the file can't be read.",
    )
    sub.add_argument(
        "run", nargs="?", default="nanquest-run", metavar="RUN", help="a run's directory, or one incident's file (default: %(default)s)"
    )
    sub.add_argument("--json", action="store_true", help="print JSON; docs/replay.md has its fields")


def _verdict_beside(path: str) -> dict | None:
    """What replay wrote beside the file, unless the file is newer."""
    beside = os.path.splitext(path)[0] + ".json"
    try:
        if os.path.getmtime(beside) < os.path.getmtime(path):
            return None
        with open(beside, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _verdict_made(path: str) -> tuple:
    """(verdict or None, why there is none, exit code)."""
    try:
        words = [*programs.command("nanquest-replay"), "--quiet", "--json", path]
        done = subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode in (0, 1):
            return json.loads(done.stdout), "", FOUND
        return None, (done.stderr.strip().splitlines() or ["nanquest-replay failed"])[-1], done.returncode
    except (programs.Missing, OSError, ValueError) as problem:
        return None, str(problem), FOUND


def _verdict_of(path: str) -> tuple:
    """As _verdict_made, which is started only if none lies beside the file."""
    beside = _verdict_beside(path)
    return (beside, "", FOUND) if beside is not None else _verdict_made(path)


def _began_elsewhere(path: str, verdict: dict | None) -> str:
    """Of several ranks: the file of the rank on which the bad value was made, if that is another one; "" otherwise."""
    ranks = (verdict or {}).get("ranks") or {}
    first = ranks.get("first") or {}
    file = os.path.join(os.path.dirname(path), os.path.basename(first.get("file") or ""))
    return file if not ranks.get("local", True) and os.path.isfile(file) else ""


def _commands(path: str, verdict: dict | None) -> list:
    file = shlex.quote(path)
    found = [
        ("all evidence, and everything that was tried", f"nanquest replay {file} --full"),
        ("look at the step", f"nanquest view {file}"),
    ]
    if verdict and verdict.get("cause") == "UNKNOWN":
        found.append(("the operation as a small program, for a bug report", f"nanquest replay repro {file}"))
    if verdict and verdict.get("origin") == "multi_step":
        found.append((TRIES, f"nanquest rehearse {file} -- COMMAND"))
    found.append(("a copy without data and weights, to give away", f"nanquest replay redact {file} -o shared.h5"))
    return [{"what": what, "command": command} for what, command in found]


def _in_manifest(run: str, table: str) -> list:
    """Rows of the run's manifest; none if it can't be read."""
    try:
        with open(os.path.join(run, "manifest.json"), encoding="utf-8") as file:
            return [row for row in json.load(file).get(table, []) if isinstance(row, dict)]
    except (OSError, ValueError, AttributeError):
        return []


def findings(run: str) -> list:
    """What the run found that is no incident: rows of its manifest, and what audits found."""
    return _in_manifest(run, "findings") + audit.findings(run)


def _without_file(run: str) -> list:
    """One line for each incident of the run that left no file (level guard, a full disk): what the program was told."""
    return [str(row.get("summary") or f"step {row.get('step')}") for row in _in_manifest(run, "incidents") if not row.get("muted")]


def explained(run: str) -> tuple:
    """(the document of --json, exit code). ValueError where there is no such run."""
    if not os.path.exists(run):
        raise ValueError(f"{run} is not there; give a run's directory (nanquest run --run-dir), or an incident's file")
    files = incidents(run) if os.path.isdir(run) else [run]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "run": run,
        "incidents": len({re.sub(r"\.r\d+\.h5$", "", file) for file in files}),  # each rank writes a file of its own
        "incident": None,
        "without_file": [],
        "verdict": None,
        "problem": "",
        "commands": [],
        "findings": findings(run) if os.path.isdir(run) else [],
    }
    if not files:
        told = _without_file(run)
        problem = f"no file was written: {told[-1]}" if told else ""
        document |= {"incidents": len(told), "without_file": told[-SHOWN:], "problem": problem}
        return document, FOUND if told or document["findings"] else NOTHING
    newest = max(files, key=os.path.getmtime)
    verdict, problem, code = _verdict_of(newest)
    if began := _began_elsewhere(newest, verdict):
        newest = began
        verdict, problem, code = _verdict_of(newest)
    commands = _commands(newest, verdict) if code in (NOTHING, FOUND) else []  # a file that can't be read helps nobody
    return {**document, "incident": newest, "verdict": verdict, "problem": problem, "commands": commands}, code


def _findings_in_words(document: dict) -> list:
    rows = document["findings"]
    lines = [f"step {row.get('step')}: {row.get('label')}: {row.get('text')}" for row in rows[:SHOWN]]
    more = [f"{len(rows) - SHOWN} more in {shorter(os.path.join(document['run'], 'manifest.json'))}"] if len(rows) > SHOWN else []
    return lines + more


def _place(stack: list) -> str:
    """The innermost line of source; of a library also the first line that is none of a package's."""
    own = next((frame for frame in stack if "site-packages" not in frame and "dist-packages" not in frame), stack[0])
    return shorter(stack[0]) if own == stack[0] else f"{shorter(stack[0])}, called from {shorter(own)}"


def _in_words(document: dict) -> list:
    verdict = document["verdict"]
    if not document["incident"] and document["incidents"]:
        return [f"{document['incidents']} incident{'s' * (document['incidents'] > 1)} without a file", *document["without_file"]]
    if not document["incident"]:
        return [f"no incident in {shorter(document['run'])}"]
    if not verdict:
        return [f"{shorter(document['incident'])} is not explained: {document['problem']}"]
    culprit, fix = verdict.get("culprit") or {}, verdict.get("fix")
    where = f": {culprit['op']}" + (f" in {culprit['module']}" if culprit.get("module") else "") if culprit.get("op") else ""
    sure = f", {round(100 * verdict['confidence'])} %" if verdict.get("confidence") else ""
    lines = [f"step {verdict['step']}: {verdict['cause']}{where} ({verdict['phase']}{sure})", f"why: {verdict['explanation']}"]
    if culprit.get("stack"):
        lines.insert(1, f"where: {_place(culprit['stack'])}")
    advice = (fix or {}).get("advice") or verdict.get("advice")
    tried = " (tried on this step)" if fix and fix.get("verified") else ""
    return [*lines, f"do: {advice}{tried}"] if advice else lines


def report(run: str, as_json: bool) -> int:
    """Prints it; the exit code."""
    try:
        document, code = explained(run)
    except ValueError as problem:
        print(f"nanquest: {problem}", file=sys.stderr)
        return USAGE
    if as_json:
        print(json.dumps(document, indent=2))
        return code
    for line in (*_in_words(document), *_findings_in_words(document)):
        print(line)
    for each in document["commands"][:2]:
        print(f"next: {each['command']}   # {each['what']}")
    return code
