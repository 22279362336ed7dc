"""Runs programs of loops/ one after the other in one process, each attached with files of its own.

usage: run_loops.py RUNS LEVEL NAME…; prints "NAME: EXIT_CODE" after each. LEVEL "standing" is trace without any watched step.
"""
import pathlib
import runpy
import sys
import traceback

import nanquest

loops = pathlib.Path(__file__).resolve().parent / "loops"
runs, level, names = sys.argv[1], sys.argv[2], sys.argv[3:]
for name in names:
    how = dict(level=level)
    if level == "standing":
        how = dict(level="trace", watch_first=0, watch_every=0, watch_after=0, keep_percent=100)
    assert nanquest.attach(run_dir=f"{runs}/{name}", **how)
    code = 0
    try:
        runpy.run_path(str(loops / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        code = end.code
    except Exception:
        traceback.print_exc()
        code = 1
    nanquest.detach()
    print(f"{name}: {code}", flush=True)
