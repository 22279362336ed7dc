"""What the processes of a run report to `nanquest run`, and the line that it prints at the end.

Each Python process that the probe was loaded into leaves a file named by its number in a folder that lasts as long as the
launcher: empty from its start, then a JSON object with "torch" (imported: its version), "off" (said why on stderr), and, once
it trains, "run_dir", "steps", "incidents", "incident_steps" (in which they were), "spikes" (those of the incidents that are finite), "carried_on" (steps of damage that was there), "skipped" (batches), "fell_back" (the
step after which it went on in fp32, or null), "repeated" (incidents that are like the one before), "outlook" (a sentence about what
is bad when it ends), "apart" (the step in which replicas were seen to differ, or null), "refused" (the index that
ended it with an error, or ""), "findings" (how many there are that are no incidents), "ended", and "stopped"
if the probe ended it. A second file holds the number of its steps in mapped memory, because a killed process cannot report. Nothing here
fails a program.
"""

from __future__ import annotations

import collections
import json
import mmap
import os
import re
import shlex
import shutil
import signal
import struct
import sys
import tempfile

from ..base.run_directory import shorter
from ..base.say import say
from ..base.settings import REPORTS

FROM_INSIDE = "write in the program: import nanquest; nanquest.attach()"
NO_START = (126, 127)  # exit codes of a command that could not be started
_told = {}
_STEPS = struct.Struct("=q")


def note(**facts) -> bool:
    """Adds facts to the report of this process. True if there is a launcher."""
    folder = os.environ.get(REPORTS)
    if not folder or not os.path.isdir(folder):
        return False
    _told.update(facts)
    path = os.path.join(folder, str(os.getpid()))
    try:
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(_told, file)
        os.replace(f"{path}.part", path)
    except OSError:
        return False
    return True


class StepCount:
    """The step count of this process in mapped memory that the launcher reads. It survives when the process is killed."""

    def __init__(self):
        self._memory, self._process = None, 0
        self.last = 0  # that was written

    def write(self, steps: int) -> None:
        self.last = steps
        if self._process != os.getpid():  # a forked child has its own
            self._process, self._memory = os.getpid(), self._made()
        if self._memory is not None:
            _STEPS.pack_into(self._memory, 0, steps)

    @staticmethod
    def _made():
        folder = os.environ.get(REPORTS)
        if not folder or not os.path.isdir(folder):
            return None
        try:
            with open(os.path.join(folder, f"{os.getpid()}.steps"), "w+b") as file:
                file.write(_STEPS.pack(0))
                file.flush()
                return mmap.mmap(file.fileno(), _STEPS.size)
        except (OSError, ValueError):
            return None


def new_folder() -> str | None:
    """Reports of one run; None if it can't have a folder."""
    try:
        return tempfile.mkdtemp(prefix="nanquest-run-")
    except OSError:
        return None


def _read(folder: str) -> list:
    found = []
    for name in sorted(os.listdir(folder)):
        if name.isdigit():
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found.append(json.loads(file.read() or "{}"))
            if "steps" in found[-1] and os.path.exists(counted := os.path.join(folder, name + ".steps")):
                with open(counted, "rb") as file:
                    found[-1]["steps"] = max(found[-1]["steps"], *_STEPS.unpack(file.read(_STEPS.size)))
    return found


def _count(number: int, what: str, several: str = "") -> str:
    return f"{number} {(several or what + 's') if number != 1 else what}"


def _extent(processes: list) -> str:
    """Such as "8 steps", "2 processes of 8 steps each", "2 processes with at least 12 steps"."""
    steps = [process["steps"] for process in processes]
    at_least = "" if all(process.get("ended") for process in processes) else "at least "
    if len(steps) == 1:
        return at_least + _count(steps[0], "step")
    same = not at_least and len(set(steps)) == 1
    return f"{len(steps)} processes " + (f"of {_count(steps[0], 'step')} each" if same else f"with {at_least}{_count(sum(steps), 'step')}")


def what_was_done(skipped: int, fell_back) -> str:
    """What the policy did, as the end of a sentence: "; 2 batches skipped, fp32 after step 12"."""
    parts = ([_count(skipped, "batch", "batches") + " skipped"] if skipped else []) + (
        [f"fp32 after step {fell_back}"] if fell_back is not None else []
    )
    return "; " + ", ".join(parts) if parts else ""


def raised() -> str:
    """The error that ends the program, in a line; "" without an error, or if the program was interrupted."""
    error = getattr(sys, "last_value", None)
    if not isinstance(error, Exception):
        return ""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _incidents(processes: list) -> str:
    """Such as "2 incidents", "1 incident on 2 ranks": what ranks of one run found in the same step is one event, told by each of them.

    Ranks share a run directory; programs that know nothing of each other have one each.
    """
    number, told = 0, set()
    for place in {process["run_dir"] for process in processes}:
        ranks = [process for process in processes if process["run_dir"] == place]
        steps = collections.Counter(step for process in ranks for step in process.get("incident_steps", ()))
        # The same step can have two: of its passes, and of its update.
        number += max([len(steps)] + [process["incidents"] for process in ranks])
        told.update(steps.values())
    most = max(told, default=1)
    return _count(number, "incident") + (f" on {'' if len(told) == 1 else 'up to '}{most} ranks" if most > 1 else "")


def outcome(processes: list) -> str:
    """The result of processes that trained: "2 incidents in 77 steps; files in run (nanquest explain run)"."""
    incidents, more = (sum(process[key] for process in processes) for key in ("incidents", "carried_on"))
    muted = sum(process.get("muted", 0) for process in processes)
    quiet = f"; {muted} muted (nanquest mute --list)" if muted else ""
    findings = sum(process.get("findings", 0) for process in processes)
    place = shorter(os.path.commonpath({process["run_dir"] for process in processes}))
    told = [process["run_dir"] for process in processes if process["incidents"] or process.get("findings")]
    why = f" (nanquest explain {shlex.quote(shorter(told[0]))})" if told else ""
    quiet += f"; {_count(findings, 'finding')}{'' if incidents else why}" if findings else ""
    apart = [process["apart"] for process in processes if process.get("apart") is not None]
    quiet += f"; replicas differ since step {min(apart)}" if apart else ""
    if not incidents:
        # An error that names no value is explained where an incident would be.
        if refused := next((process["refused"] for process in processes if process.get("refused")), ""):
            return f"{refused}, after {_extent(processes)}{quiet}"
        return f"no incident in {_extent(processes)}{quiet}"
    repeated = sum(process.get("repeated", 0) for process in processes)
    notes = ([f"{_count(more, 'later step')} only propagated these values"] if more else []) + (
        [f"{repeated} of them bad anew like the one before, without a file"] if repeated else []
    )
    spikes = sum(process.get("spikes", 0) for process in processes)
    notes = ([f"{spikes} of them finite: far out of the usual range"] if spikes else []) + notes
    carried = f" ({'; '.join(notes)})" if notes else ""
    quiet += next((f"; {process['outlook']}" for process in processes if process.get("outlook")), "")
    done = what_was_done(
        max(process.get("skipped", 0) for process in processes),
        next((process["fell_back"] for process in processes if process.get("fell_back") is not None), None),
    )
    return f"{_incidents(processes)} in {_extent(processes)}{carried}{quiet}{done}; files in {place}{why}"


def options_against(command: list) -> str:
    """The option of Python in `command` that prevents the probe from loading: "-I", "-E", "-S", or ""."""
    if not re.fullmatch(r"(python|pypy)[\d.]*", os.path.basename(command[0])):
        return ""
    arguments = iter(command[1:])
    for argument in arguments:
        if argument in ("-", "--") or not argument.startswith("-"):
            break
        if argument.startswith("--"):
            next(arguments, None)
            continue
        letters = re.match(r"-([^cmWX]*)(.?)(.*)", argument, re.S)
        if found := set(letters[1]) & set("IES"):
            return "-" + sorted(found)[0]
        if letters[2] in ("c", "m"):
            break
        if letters[2] and not letters[3]:
            next(arguments, None)
    return ""


def _ended(code: int) -> str:
    """How a program ended: from its exit code, or its signal as a negative number."""
    return f"ended with code {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"


def _of_native(program, code: int) -> str:
    """The same for a program that is linked with LibTorch and made no step."""
    if program.refused:
        return ""
    if code:
        return f"nothing was observed: the program {_ended(code)} before it made a training step"
    return (
        "nothing was observed: the program uses LibTorch, but made no training step (a backward pass, then an update that writes to the "
        "weights in place)"
    )


def summary(processes: list, command: list, code: int, program=None) -> str:
    """The launcher's last line after a command that ended with `code`; "" if everything has been printed before. `program`: the result of
    native.look."""
    trained = [process for process in processes if process.get("steps") or process.get("incidents")]
    if trained:
        return outcome(trained)
    if any("off" in process or "launched" in process for process in processes) or (not processes and code in NO_START):
        return ""
    if program is not None and (program.torch or program.refused):
        return _of_native(program, code)
    elsewhere = f"for a process with a cleaned environment or on another machine, {FROM_INSIDE}"
    if any("torch" in process for process in processes):
        if code:
            return f"nothing was observed: the program {_ended(code)} before it made a training step"
        return (
            "nothing was observed: torch was imported, but no training step was made (a step needs a backward pass or torch.func.grad; "
            "steps of a compiled optimizer, under compiled autograd, or made without torch.optim on another than the main thread, "
            f"are not seen); {elsewhere}"
        )
    if processes:
        return "" if code else f"nothing was observed: torch was not imported; {elsewhere}"
    if option := options_against(command):
        return f"nothing was observed: {os.path.basename(command[0])} {option} prevents the probe from loading; remove it, or {FROM_INSIDE}"
    return (
        "nothing was observed: no Python process loaded the probe (-I, -E, -S or a cleaned environment prevent that: remove them, "
        f"or {FROM_INSIDE}), and no program linked with LibTorch was started"
    )


def say_and_remove(folder: str | None, command: list, code: int, program=None) -> bool:
    """Prints the last line of a run. Returns whether the probe has stopped one of its processes."""
    if folder is None:
        return False
    try:
        processes = _read(folder)
        if line := summary(processes, command, code, program):
            say(line)
        shutil.rmtree(folder)
        return any(process.get("stopped") for process in processes)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        say(f"the reports of the processes can't be read: {problem}")
        return False
