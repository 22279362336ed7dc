"""The directory of this process among those of the run, and the files of steps in them."""

from __future__ import annotations

import glob
import os
import re
import tempfile

from .rank import place_in_group, restarts
from .settings import RUN_ID

# As parse_incident_name in probe/snapshot/run_dir.h: step, rank, attempt.
SNAPSHOT = re.compile(r"step-([0-9]+)\.r([0-9]+)(?:\.([0-9]+))?\.h5")


def claim(run_dir: str) -> str:
    """The directory for this process: several processes of one run with the same rank must not share files. Ranks that were restarted
    together have a run directory of their own for it: run/restart-1."""
    if again := restarts():
        run_dir = os.path.join(run_dir, f"restart-{again}")
    run = os.environ.get(RUN_ID) or f"pid-{os.getpid()}"
    rank, _ = place_in_group()
    os.makedirs(run_dir, exist_ok=True)
    mark = os.path.join(run_dir, f".process.r{rank}")
    mine = f"{run} {os.getpid()}\n"
    for _ in range(2):
        try:
            with open(mark, "x", encoding="utf-8") as file:
                file.write(mine)
            return run_dir
        except FileExistsError:
            with open(mark, encoding="utf-8", errors="replace") as file:
                holder = file.read()
            if holder.split(" ")[0] == run and holder != mine:
                return os.path.join(run_dir, f"process-{os.getpid()}")
            # Left by an earlier run.
            try:
                os.unlink(mark)
            except FileNotFoundError:
                pass
    return os.path.join(run_dir, f"process-{os.getpid()}")


def refused(run_dir: str) -> str:
    """Why no run can have this directory, in a line; "" if it can. What was made to find out is removed again."""
    made, at = [], os.path.abspath(run_dir)
    while not os.path.lexists(at):
        made.append(at)
        at = os.path.dirname(at)
    try:
        os.makedirs(run_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=run_dir):
            return ""
    except OSError as problem:
        return f"no files can be written to {run_dir}: {problem.strerror or problem}; give another directory with --run-dir"
    finally:
        for path in made:  # the innermost first
            try:
                os.rmdir(path)
            except OSError:
                break


def step_of(snapshot: str) -> int | None:
    """The step of a snapshot, by its name; None for a file that is none."""
    name = SNAPSHOT.fullmatch(os.path.basename(snapshot))
    if not name or int(name[1]) >= 2**63 or max(int(name[2]), int(name[3] or 0)) >= 2**31:
        return None
    return int(name[1])


def rank_of(snapshot: str) -> int:
    """The rank of one of `snapshots`, by its name."""
    return int(SNAPSHOT.fullmatch(os.path.basename(snapshot))[2])


def snapshots(run_dir: str, *folders: str) -> list:
    """Paths of the snapshots in folders of a run ("incidents", "recordings"), including those of its processes and of restarts."""
    found = []
    for below in ("", "process-*", "restart-*", os.path.join("restart-*", "process-*")):
        for folder in folders:
            found += glob.glob(os.path.join(glob.escape(run_dir), below, folder, "step-*.h5"))
    return sorted(path for path in found if step_of(path) is not None)


def shorter(path: str) -> str:
    """The path relative to the working directory, if it is inside it."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if relative.startswith("..") else relative
