"""What `nanquest doctor` checks without starting torch: the hook, disk and memory, programs and launchers."""

from __future__ import annotations

import importlib.machinery
import os
import shutil
import subprocess
import sys
import sysconfig

from ..base import library, package, programs, run_directory
from ..base.sizes import in_words
from .doctor_findings import OK, PROBLEM, WARNING, Finding

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "srun", "mpirun")
LITTLE = 0.05  # a warning if less than this share of a disk is free
SOON = 2 << 30  # bytes: a warning below this too


def torch_version() -> str:
    """Of this Python's torch, "" if it has none."""
    return library.installed_torch()[1]


# The hook.


def _another_sitecustomize() -> str:
    """The sitecustomize that runs after ours, "" if there is none."""
    spec = importlib.machinery.PathFinder.find_spec(
        "sitecustomize", [path for path in sys.path if os.path.abspath(path or ".") != package.BOOTSTRAP]
    )
    return spec.origin or "" if spec else ""


def _login_shell_keeps(name: str) -> bool:
    """Whether a login shell, which many schedulers start, keeps environment variables that are set before it. True if unknown."""
    try:
        done = subprocess.run(
            ["bash", "-lc", f'printf "%s" "${name}"'],
            env=dict(os.environ, **{name: "/nanquest-was-here"}),
            text=True,
            capture_output=True,
            timeout=10,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 0 or "/nanquest-was-here" in done.stdout


def hook() -> list:
    found = []
    if sys.flags.isolated or sys.flags.ignore_environment:
        found.append(
            Finding(
                "hook",
                WARNING,
                "this Python runs with -I or -E; programs started so do not load the probe",
                "remove the option, or write in the program: import nanquest; nanquest.attach()",
            )
        )
    if other := _another_sitecustomize():
        found.append(Finding("hook", OK, f"loaded through PYTHONPATH; {other} runs after it, as it would without nanquest"))
    else:
        found.append(Finding("hook", OK, "loaded through PYTHONPATH (not in programs that run with -I, -E or -S)"))
    if not _login_shell_keeps("PYTHONPATH"):
        found.append(
            Finding(
                "hook",
                WARNING,
                "a login shell here replaces PYTHONPATH, so the hook is lost in it",
                "start the training without bash -l, or put nanquest run inside it",
            )
        )
    return found


# Disk and memory.


def _existing(path: str) -> str:
    """The folder itself, or its nearest parent that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _snapshot_takes(run_dir: str) -> str:
    sizes = [os.path.getsize(path) for path in run_directory.snapshots(run_dir, "incidents", "recordings")]
    if sizes:
        return f"the {len(sizes)} there take {in_words(sum(sizes))}, the largest {in_words(max(sizes))}"
    return (
        "not known before the first one: about the size of weights, moments (fp32: 12 bytes per parameter with AdamW, 8 with SGD and "
        "momentum) and the batch"
    )


def _memory() -> int:
    """Free bytes: of the machine, or of this process's control group."""
    free = 0
    with open("/proc/meminfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="utf-8") as most, open("/sys/fs/cgroup/memory.current", encoding="utf-8") as now:
            free = min(free, max(int(most.read()) - int(now.read()), 0))
    except (OSError, ValueError):  # no such group, or "max"
        pass
    return free


def room(run_dir: str) -> list:
    folder = _existing(run_dir)
    usage = shutil.disk_usage(folder)
    text = f"{in_words(usage.free)} of {in_words(usage.total)} free at {os.path.abspath(run_dir)}"
    found = []
    if os.path.exists(run_dir) and not os.path.isdir(run_dir):
        found.append(Finding("disk", PROBLEM, f"{run_dir} is not a directory", "give another --run-dir", True))
    elif not os.access(folder, os.W_OK):
        found.append(Finding("disk", PROBLEM, f"{folder} is not writable", "give another --run-dir", True))
    elif usage.free < max(min(usage.total * LITTLE, SOON), 1):
        found.append(Finding("disk", WARNING, text, "give another --run-dir; --max-disk bounds what a run takes"))
    else:
        found.append(Finding("disk", OK, text))
    found.append(Finding("snapshot", OK, _snapshot_takes(run_dir)))
    found.append(
        Finding(
            "memory",
            OK,
            f"{in_words(_memory())} free; level trace may take 25 % of it for what the last updates "
            "overwrote (--keep-memory-percent), else the steps' operations only",
        )
    )
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        found.append(Finding("cores", WARNING, "1 for this process", "--explain would take time from the training: replay later"))
    else:
        found.append(Finding("cores", OK, f"{cores} for this process"))
    return found


# Other programs and launchers.


def _program(name: str, needed: bool):
    try:
        return Finding(name, OK, programs.find(name))
    except programs.Missing:
        return Finding(name, WARNING if needed else OK, "not there", programs.GET[name])


def beside() -> list:
    paths = os.pathsep.join([os.environ.get("PATH", ""), sysconfig.get_path("scripts") or ""])
    there = [name for name in LAUNCHERS if shutil.which(name, path=paths)]
    return [
        _program("nanquest-replay", True),
        _program("nanquest-viewer", False),
        Finding(
            "launchers",
            OK,
            f"{', '.join(there)}; nanquest run goes before them: nanquest run -- {there[0]} …"
            if there
            else "none found of " + ", ".join(LAUNCHERS),
        ),
    ]
