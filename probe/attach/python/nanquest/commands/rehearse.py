"""`nanquest rehearse`: tries changes against an incident with the program itself.

The command is run repeatedly, up to some steps after the incident: unchanged, with placebos (the last bit of one weight is changed),
and with one --set each. nanquest-replay judge decides which change prevents the incident, with the same rule as for nanquest-trainer
(replay/verdict/rehearsal.h). The result is a file beside the snapshot, step-N.rR.rehearsal.json:

    {"format": "nanquest.rehearsal", "version": 1, "snapshot": name, "step": N, "rank": R, "program": the command, "began": "",
     "horizon": --steps, "as_recorded": whether the unchanged run had the losses on record bit for bit (null: none to compare with),
     "runs": [{"kind": "unchanged" | "placebo" | "change", "change": in words, "first_step": number, "losses": of every good step from
               that one on (null: none), "failed_step": number or null, "failure": what was bad, "ended_itself": the program was over
               before it was ended, "not_tried": why it could not be run}],
     … and what judge adds to the runs, "spread", "root", "not_tried"}

A change of meaning increases "version"; readers ignore fields that they don't know.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys

from ..base import changes, programs
from ..base.say import say
from ..start import launcher
from .rehearsal_runs import DEFAULT, Rehearsal, Stop

FOUND, NO_ROOT, USAGE, BAD_FILE, INTERRUPTED = 0, 1, 2, 3, 130
LEAST_STEPS = 16  # steps by which a successful change must outlive all other runs (replay/verdict/rehearsal.h)

HELP = """runs COMMAND several times under the probe, each until --steps optimizer steps after the snapshot's step: unchanged (it must fail in
that step again), with placebos, and with each --set. Prints which change cures the run, and so the root of the incident."""
EXAMPLE = f"""what --set may change, several joined by comma: {changes.KNOWN}

  nanquest rehearse nanquest-run/incidents/step-00000131.r0.h5 -- python train.py
  nanquest rehearse nanquest-run/incidents/step-00000131.r0.h5 --set lr=*0.5 --set clip=1.0,warmup=200 \\
      -- python train.py --resume_from_checkpoint out/checkpoint-100 --output_dir out-rehearsed

The program does everything that it always does: give it another directory for its output. Exit code: 0 a change cures the run, 1 no change
does or the unchanged run does not fail, 2 usage or the command fails, 3 a bad file, 130 interrupted."""


def _steps(text: str) -> int:
    if not text.isdigit() or int(text) < LEAST_STEPS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least {LEAST_STEPS}: a cure must outlive the failure by these"
        )
    return int(text)


def _whole(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def add_to(verbs) -> None:
    """The sub-command's options."""
    sub = verbs.add_parser(
        "rehearse",
        usage="nanquest rehearse [options] SNAPSHOT -- COMMAND ...",
        help="try the root of an incident with the program itself",
        description=HELP,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("snapshot", metavar="SNAPSHOT", help="file of the incident (step-*.h5)")
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="a change; each --set is a run of its own (default: "
        + ", ".join(DEFAULT)
        + ", precision=fp32 of a program in 16 bits, and skip= of the snapshot's step)",
    )
    sub.add_argument(
        "--steps",
        type=_steps,
        default=64,
        metavar="N",
        help="steps beyond the failure; fewer than 64 verify nothing for the run (default: %(default)s)",
    )
    sub.add_argument(
        "--placebos",
        type=_whole,
        default=4,
        metavar="K",
        help="runs in which only the last bit of one weight is another (default: %(default)s)",
    )
    sub.add_argument(
        "--first-step",
        type=_whole,
        default=None,
        metavar="N",
        help="number of the first step that the command makes, as the snapshot counts (default: as the program, its Trainer "
        "or its optimizer counts, or where its losses are those on record)",
    )
    sub.add_argument("--json", action="store_true", help="print the result as JSON")


def _facts_of(snapshot: str) -> dict:
    """What nanquest-replay reads from the file."""
    if os.path.isdir(snapshot):
        raise Stop(f"{snapshot} is a directory; name one of its incidents: {os.path.join(snapshot, 'incidents', 'step-….h5')}")
    done = subprocess.run([*programs.command("nanquest-replay"), "info", "--json", snapshot], text=True, capture_output=True, check=False)
    if done.returncode:
        line = (done.stderr.strip().splitlines() or [f"nanquest-replay ended with code {done.returncode}"])[-1]
        raise Stop(line.removeprefix("nanquest-replay: "), BAD_FILE)
    facts = json.loads(done.stdout)
    if "growth" not in facts:
        raise Stop("nanquest-replay is older than this package; install nanquest again")
    return facts


def _judge(document: dict) -> dict:
    """The same document with judge's results."""
    done = subprocess.run(
        [*programs.command("nanquest-replay"), "judge", "-", "--json"],
        input=json.dumps(document),
        text=True,
        capture_output=True,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Stop(f"nanquest-replay judge ended with code {done.returncode}: {done.stderr.strip()}", BAD_FILE) from None


def _write(path: str, document: dict) -> None:
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as problem:
        try:
            os.unlink(part)
        except OSError:
            pass
        raise Stop(f"{path}: {problem.strerror}; the result is lost, make room or the folder writable", BAD_FILE) from None


def _rehearse(options) -> int:
    line, code = launcher.why_not(options.command, "rehearse SNAPSHOT")
    if line:
        raise Stop(line, code)
    changes.parse(*options.set)
    facts = _facts_of(options.snapshot)
    path = options.snapshot.removesuffix(".h5") + ".rehearsal.json"
    if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise Stop(
            f"{os.path.dirname(os.path.abspath(path))} is not writable, and the result belongs there; copy the snapshot elsewhere", BAD_FILE
        )
    document = _judge(Rehearsal(options, facts).run())
    _write(path, document)
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        sys.stdout.flush()
        subprocess.run([*programs.command("nanquest-replay"), "judge", path], check=False)
    return FOUND if (document.get("root") or {}).get("cured") else NO_ROOT


def _terminated(*_):
    raise SystemExit(128 + signal.SIGTERM)


def main(options) -> int:
    """Exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return _rehearse(options)
    except KeyboardInterrupt:
        say("interrupted; nothing was written")
        return INTERRUPTED
    except programs.Missing as problem:
        say(str(problem))
        return USAGE
    except Stop as problem:
        say(str(problem))
        return problem.code
