"""The directory of this process among those of the run."""

from __future__ import annotations

import os

from .rank import place_in_group, restarts
from .settings import RUN_ID


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


def shorter(path: str) -> str:
    """The path relative to the working directory, if it is inside it."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if relative.startswith("..") else relative
