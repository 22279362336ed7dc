"""`nanquest doctor`: checks what would be observed here, and why not.

It trains a tiny program in a child process as `nanquest run` would start it, records a step of it, and replays that file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile

from ..base import library, package, programs, run_directory
from ..base.environment import set_here
from ..base.settings import LIBRARY, OFF, Settings, switched_off
from ..base.sizes import in_words
from ..start import launcher, native
from . import doctor_machine
from .doctor_findings import OK, PROBLEM, WARNING, Finding

NOTHING_TO_OBSERVE = 2
PATIENCE = 300  # seconds for the tiny program: importing torch from a network disk takes long
GIVES = {
    "guard": "checks loss and gradients before each update; names the step, writes no file",
    "trace": "also records every step; writes a file that can be replayed (the default)",
    "watch": "also checks every value that is written: finds damage that loss and gradients do not show",
}


def _python_and_torch() -> list:
    found = [Finding("python", OK, f"{sys.version.split()[0]}, {sys.executable} (ask with the Python that trains)")]
    version = doctor_machine.torch_version()
    if not version:
        return found + [
            Finding(
                "torch", PROBLEM, "not installed in this Python", "run nanquest in the environment that trains, or pip install torch", True
            )
        ]
    return found + [Finding("torch", OK, version)]


def _library() -> Finding:
    """Whether there is a library for this torch, before it is loaded."""
    version = doctor_machine.torch_version()
    if not version:
        return Finding("probe", OK, f"nanquest {package.VERSION}, for {library.served_in_words()}")
    try:
        path = library.check(version)
    except library.Unfit as unfit:
        return Finding("probe", PROBLEM, str(unfit), library.FROM_SOURCE, True)
    return Finding("probe", OK, f"nanquest {package.VERSION}, built for PyTorch {library.built_for(path)}: {path}")


def _native() -> Finding:
    """Whether the probe can be loaded into C++ programs. This is not tried, because there may be no compiler here."""
    if not os.path.exists(native.preload()):
        return Finding(
            "C++ programs",
            WARNING,
            f"{native.preload()} is missing, so C++ programs run without the probe",
            "pip install . (in nanquest's folder)",
        )
    return Finding("C++ programs", OK, f"those linked with LibTorch {', '.join(library.served())} are observed under nanquest run")


def _train(run_dir: str, hooked: bool) -> tuple:
    """(what the tiny program found or {}, its last lines on stderr)."""
    settings = Settings(run_dir=run_dir, level="watch", record_steps=(1,))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OFF)}
    if library.named():
        environment[LIBRARY] = library.named()
    if hooked:
        environment.update(launcher.environment_of(settings))
    try:
        done = subprocess.run(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "doctor_program.py")],
            env=environment,
            cwd=os.path.dirname(run_dir),
            text=True,
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return json.loads(done.stdout.strip().splitlines()[-1]), done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        return {}, [f"two steps took more than {PATIENCE} s"]
    except (ValueError, IndexError):
        return {}, done.stderr.strip().splitlines()[-1:] or [f"it ended with exit code {done.returncode} and no word"]
    except OSError as problem:
        return {}, [f"{type(problem).__name__}: {problem}"]


def _attached(facts: dict, said: list) -> Finding:
    """Whether the tiny program was observed, as `nanquest run` would do it."""
    if facts.get("attached"):
        return Finding("attached", OK, f"a test program of {facts['steps']} steps was observed as under nanquest run")
    why = next((line for line in said if line.startswith("nanquest:")), said[-1] if said else "the hook was not run")
    if not facts:
        return Finding(
            "attached", PROBLEM, f"a tiny test program failed: {why}", "make `import torch` and two steps work in this Python first", True
        )
    return Finding(
        "attached",
        PROBLEM,
        f"a tiny test program was not observed: {why.removeprefix('nanquest: ')}",
        "see the lines above; from inside a program: import nanquest; nanquest.attach()",
        True,
    )


def _replayed(run_dir: str) -> Finding:
    """The recorded step of the tiny program, run again."""
    files = run_directory.snapshots(run_dir, "incidents", "recordings")
    if not files:
        return Finding("recorded", PROBLEM, "the test step was not recorded", "please report this, with this output", True)
    size = in_words(os.path.getsize(files[0]))
    try:
        done = subprocess.run(
            [*programs.command("nanquest-replay"), "verify", files[0], "--json"],
            text=True,
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        exact = json.loads(done.stdout)["bit_exact"]
    except programs.Missing:
        return Finding("recorded", OK, f"a step of it, {size}")
    except (subprocess.TimeoutExpired, OSError, ValueError, KeyError) as problem:
        return Finding(
            "recorded",
            WARNING,
            f"a step of it, {size}, but nanquest-replay can't replay it: {type(problem).__name__}",
            f"try it: nanquest replay info on a file of a run; {programs.find('nanquest-replay')} --version",
        )
    if not exact:
        return Finding(
            "recorded",
            WARNING,
            f"a step of it, {size}, but the replay gives other values",
            "replay with the LibTorch that recorded it, on the same processor",
        )
    return Finding("recorded", OK, f"a step of it, {size}, replayed bit for bit")


def _devices(facts: dict) -> Finding:
    found = facts.get("devices", [])
    names = "; ".join(f"{kind}: {name}" for kind, name in found)
    if not found:
        return Finding("devices", OK, f"CPU, {facts.get('threads', '?')} threads of torch")
    if all(kind == "cuda" for kind, _ in found):
        return Finding(
            "devices",
            OK,
            f"CPU, {names}",
            "docs/devices.md lists what was tested on GPUs and what it costs; weights on GPUs are not compared between replicas",
        )
    return Finding(
        "devices",
        WARNING,
        f"CPU, {names}",
        "models on this device are observed, but nanquest was never tested on this kind; docs/devices.md lists what was tested",
    )


def _back_ends(facts: dict) -> list:
    """How values and gradients on each kind of device are measured, and why in the slow way."""
    found = []
    for kind, kernels in facts.get("kernels", []):
        scans, looks = kernels & 1, kernels & 2
        text = f"{kind}: values are measured by {'a kernel of nanquest' if scans else 'PyTorch operators, each copied to the host (slow)'}"
        text += f", gradients by {'a kernel of nanquest' if looks else 'PyTorch norms'}"
        if scans:
            found.append(Finding("back end", OK, text))
        elif kind == "cuda":
            way_out = "install a package of nanquest with kernels for this driver, or build it where nvcc is (docs/devices.md)"
            found.append(Finding("back end", WARNING, f"{text}: {facts.get('no_cuda_kernels')}", way_out))
        else:
            way_out = "--level guard costs least here; docs/devices.md has the kinds of device with a kernel"
            found.append(Finding("back end", WARNING, f"{text}: nanquest has no kernel for this kind of device", way_out))
    return found


def _variables() -> list:
    ours, strangers = set_here()
    found = []
    try:
        Settings.from_environment()
    except ValueError as problem:
        found.append(
            Finding(
                "variables",
                PROBLEM,
                str(problem),
                "correct it, or unset it: until then programs that attach by the environment run without the probe",
                False,
            )
        )
    if switched_off():
        found.append(Finding("switched off", PROBLEM, f"{OFF}={os.environ[OFF]} is set, so nothing is observed", f"unset {OFF}", True))
    elif ours.get(OFF, "on").lower() not in ("", "on", "1"):
        found.append(Finding("variables", WARNING, f"{OFF}={ours[OFF]} has no effect", f"{OFF}=off switches everything off"))
    for name, near in strangers.items():
        found.append(Finding("variables", WARNING, f"{name} is not known", f"did you mean {near}? " if near else "see docs/running.md"))
    told = ", ".join(f"{name}={value}" for name, value in ours.items() if name != OFF)
    return found + ([Finding("variables", OK, told + " (nanquest run replaces its own options)")] if told else [])


def look(run_dir: str) -> list:
    """All findings, in an order in which each depends only on earlier ones."""
    found = [*_python_and_torch(), _library()]
    facts = {}
    if not any(each.blocks for each in found):
        found.append(_native())
        with tempfile.TemporaryDirectory(prefix="nanquest-doctor-") as folder:
            tiny = os.path.join(folder, "run")
            facts, said = _train(tiny, hooked=True)
            found.append(_attached(facts, said))
            if facts.get("attached"):
                found.append(_replayed(tiny))
    if facts.get("attached"):
        path, version = facts["hdf5"]
        found += [Finding("HDF5", OK, f"{version}, {path}" if path else "built into the probe")]
        found += [Finding(f"level {level}", OK, text) for level, text in GIVES.items()]
    if facts:
        found.append(_devices(facts))
        found += _back_ends(facts)
    found += doctor_machine.hook() + doctor_machine.room(run_dir) + doctor_machine.beside()
    return found + _variables()


def report(run_dir: str, as_json: bool) -> int:
    """Prints the findings; returns the exit code."""
    found = look(run_dir)
    blocked = any(each.blocks for each in found)
    if as_json:
        print(
            json.dumps(
                {
                    "format": "nanquest.doctor",
                    "version": 1,
                    "observes": not blocked,
                    "findings": [dataclasses.asdict(each) for each in found],
                },
                indent=2,
            )
        )
    else:
        width = max(len(each.name) for each in found)
        for each in found:
            print(f"{each.state:8} {each.name:{width}}  {each.text}")
            if each.way_out:
                print(f"{'':8} {'':{width}}  -> {each.way_out}")
        print("programs would not be observed here" if blocked else "programs that nanquest run starts here are observed")
    return NOTHING_TO_OBSERVE if blocked else 0
