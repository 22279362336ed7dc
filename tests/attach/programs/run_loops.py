"""Runs programs of loops/ one after the other in one process, each attached with files of its own.

usage: run_loops.py RUNS LEVEL NAME…; prints "NAME: EXIT_CODE" after each
"""
import pathlib
import runpy
import sys
import traceback

import nanquest

loops = pathlib.Path(__file__).resolve().parent / "loops"
runs, level, names = sys.argv[1], sys.argv[2], sys.argv[3:]
for name in names:
    assert nanquest.attach(run_dir=f"{runs}/{name}", level=level)
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
