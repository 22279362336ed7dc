"""Runs programs of a folder beside it one after the other in one process, each attached with files of its own.

usage: run_loops.py FOLDER RUNS LEVEL NAME…; prints "NAME: EXIT_CODE" after each. LEVEL "standing" is trace without any watched step.
"""
import pathlib
import runpy
import sys
import traceback

import nanquest

folder = pathlib.Path(__file__).resolve().parent / sys.argv[1]
runs, level, names = sys.argv[2], sys.argv[3], sys.argv[4:]
for name in names:
    how = dict(level=level)
    if level == "standing":
        how = dict(level="trace", watch_first=0, watch_every=0, watch_after=0, keep_percent=100)
    assert nanquest.attach(run_dir=f"{runs}/{name}", **how)
    code = 0
    try:
        runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        code = end.code
    except Exception:
        traceback.print_exc()
        code = 1
    nanquest.detach()
    print(f"{name}: {code}", flush=True)
