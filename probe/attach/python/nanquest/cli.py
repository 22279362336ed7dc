"""The command `nanquest`."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys

from .base import library, package, programs, run_directory
from .base.say import say
from .base.settings import EXIT_ON_INCIDENT, OFF, REPORTS, Settings, switched_off
from .commands import audit, explain, explain_run, mute, rehearse, run_options
from .commands.verb_parser import VerbParser
from .data import prepare, prepare_options, sample
from .start import launcher, native
from .start.launcher import USAGE_ERROR
from .tell import reports, start_line

DOORS = {"view": ("nanquest-viewer",), "collect": ("nanquest-replay", "collect"), "diff": ("nanquest-replay", "diff")}

EXAMPLES = """examples:
  nanquest run -- python train.py --epochs 3
  nanquest run --level watch --run-dir runs/hunt -- torchrun --nproc-per-node 2 train.py
  nanquest run --on-incident fallback_fp32 -- python train.py
  nanquest run -- ./train data/               # a C++ program that is linked with LibTorch
  eval "$(nanquest env --run-dir runs/job)"     # for job schedulers: Python programs started later are observed

  nanquest run --explain -- python train.py     # explain each incident while the training runs
  nanquest rehearse nanquest-run/incidents/step-00000131.r0.h5 -- python train.py    # would a lower learning rate have avoided it?
  nanquest explain nanquest-run                 # the newest incident: cause, fix, what to type next
  nanquest replay nanquest-run/incidents/step-00000131.r0.h5
  nanquest view nanquest-run

Each bad step is saved to one file in RUN_DIR/incidents; `nanquest replay FILE` explains it. Level guard only names
the step and saves nothing.
"""


def _add_run_or_env(verbs, verb: str, text: str) -> None:
    sub = verbs.add_parser(
        verb,
        usage=f"nanquest {verb} [options]" + (" -- COMMAND ..." if verb == "run" else ""),
        help=text,
        description=text,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if verb == "run":
        sub.add_argument(
            "--explain",
            action="store_true",
            help="replay each incident in the background with the lowest priority, and print its cause in three lines",
        )
        sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the program")
    run_options.add_to(sub)


def _add_door(verbs, verb: str, program: str) -> None:
    """A verb that `main` hands to another program; it is listed here for --help."""
    verbs.add_parser(verb, help=f"the program {program}; nanquest {verb} --help shows its options", add_help=False)


def _add_doctor(verbs) -> None:
    asked = verbs.add_parser("doctor", help="check what would be observed here, and why not")
    asked.add_argument("--run-dir", default=Settings.run_dir, metavar="DIR", help="directory for the files (default: %(default)s)")
    asked.add_argument("--json", action="store_true", help="print JSON")


def _parser() -> argparse.ArgumentParser:
    """The verbs in the order in which people need them."""
    parser = VerbParser(
        prog="nanquest",
        usage="nanquest [-h] [--version] VERB ...",
        description="NaN forensics for PyTorch programs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="versions of the package and of its PyTorch")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", prog="nanquest")
    _add_run_or_env(verbs, "run", "run a command and observe every PyTorch program in it")
    explain_run.add_to(verbs)
    _add_door(verbs, "replay", "nanquest-replay, also with --import MODULE, for operators that are written in Python")
    _add_door(verbs, "view", "nanquest-viewer")
    _add_door(verbs, "diff", "nanquest-replay diff: two recordings of one step, where they part and why")
    rehearse.add_to(verbs)
    _add_doctor(verbs)
    mute.add_to(verbs)
    _add_run_or_env(verbs, "env", "print shell commands that set the same up for later programs")
    _add_door(verbs, "collect", "nanquest-replay collect")
    _add_door(verbs, "train", "nanquest-trainer, also on the ranks that torchrun started")
    prepare_options.add_to(verbs)
    sample.add_to(verbs)
    verbs.add_parser("skill", help="print how a coding agent uses nanquest")
    return parser


def _run(options) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if command and switched_off() and shutil.which(command[0]) is not None:
        say(f"switched off by {OFF}={os.environ[OFF]}: the program runs without the probe")
        return launcher.become(command)
    line, code = launcher.why_not(command, "run")
    if line:
        print(f"nanquest: {line}", file=sys.stderr)
        return code
    settings, program = run_options.settings_of(options), native.look(command)
    # A run that is to be stopped by an incident must not go on without the probe.
    unwritable = settings.on_incident == "stop" and run_directory.refused(settings.run_dir)
    if line := native.why_not(program, settings) or unwritable:
        print(f"nanquest: {line}", file=sys.stderr)
        return USAGE_ERROR
    environment = dict(os.environ, **launcher.environment_of(settings))
    if program.preload:
        environment.update(native.environment(settings))
    if program.refused:
        say(program.refused)
    try:
        explainer = explain.start(options.run_dir) if options.explain else None
        auditor = audit.start(options.run_dir, settings.audit, settings.record_steps) if settings.audit else None
    except programs.Missing as problem:
        print(f"nanquest: {problem}", file=sys.stderr)
        return USAGE_ERROR
    if not program.preload:  # it says so itself
        start_line.say_start(settings)
    reports.note(launched=True)  # meant for a launcher around this one
    folder = reports.new_folder()
    environment[REPORTS] = folder or ""
    status = launcher.run(command, environment)
    stopped = reports.say_and_remove(folder, command, os.waitstatus_to_exitcode(status), program)
    if explainer:
        explainer.finish("the remaining incidents are not explained; use nanquest replay FILE")
    if auditor:
        auditor.finish("the remaining steps are not audited")
    # A launcher in between (torchrun, accelerate launch) has replaced it by a code of its own.
    return EXIT_ON_INCIDENT if stopped and os.waitstatus_to_exitcode(status) > 0 else launcher.end_as(status)


def main(arguments: list | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["train"]:
        from .commands import train

        return train.main(arguments[1:])
    if arguments[:1] == ["replay"]:
        from .commands import replay

        return replay.main(arguments[1:])
    if arguments[:1] and arguments[0] in DOORS:  # everything after it belongs to that program
        program, *first = DOORS[arguments[0]]
        return programs.become(program, [*first, *arguments[1:]])
    parser = _parser()
    # What follows "--" is the command; as a positional argument of the verb it would take the verb's options too.
    cut = arguments.index("--") if arguments[:1] == ["rehearse"] and "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    if options.verb == "rehearse":
        options.command = arguments[cut + 1 :]
    if options.version:
        print(f"nanquest {package.VERSION}, for {library.served_in_words()}")
        return 0
    if options.verb is None:
        parser.print_help()
        return 0
    try:
        if options.verb == "run":
            return _run(options)
        if options.verb == "explain":
            return explain_run.report(options.run, options.json)
        if options.verb == "skill":
            print(package.skill(), end="")
            return 0
        if options.verb == "rehearse":
            return rehearse.main(options)
        if options.verb == "prepare":
            return prepare.main(options)
        if options.verb == "sample":
            return sample.main(options)
        if options.verb == "doctor":
            from .commands import doctor

            return doctor.report(options.run_dir, options.json)
        if options.verb == "mute":
            return mute.command(options.what, options.mute_file, options.list, options.remove)
        if switched_off():
            print(f"# {OFF}={os.environ[OFF]}: nothing is attached")
            return 0
        for name, value in launcher.environment_of(run_options.settings_of(options)).items():
            print(f"export {name}={shlex.quote(value)}")
        return 0
    except ValueError as error:
        print(f"nanquest: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:  # whoever read it (head) has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
