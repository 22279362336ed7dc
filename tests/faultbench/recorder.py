"""Runs programs one after another, each in a forked child of a process that has imported torch once.

Reads one job a line on stdin, as JSON, and answers one line each. A job has `file` and `arguments` (the program's), `out`
(a folder), `seconds`, and either `level` and `on_incident` (the child attaches as a program under `nanquest run` does when
it has imported torch) or `baselines` (a module's file, whose `judge` looks at the program instead).
"""

import json
import os
import pathlib
import runpy
import signal
import sys
import time
import traceback

import torch  # here, so that children need not


def attach(job):
    """What `nanquest run` puts into the environment, and what its start-up file does once torch is there."""
    from nanquest.base.settings import RUN_ID, Settings
    settings = Settings(run_dir=os.path.join(job["out"], "run"), level=job["level"], on_incident=job["on_incident"])
    settings.check()
    os.environ.update(settings.to_environment(), **{RUN_ID: f"{os.getpid()}-{int(time.time())}"})
    from nanquest.start.process import attach_by_environment
    attach_by_environment()


def note_weights(job):
    """At the program's end, whether its weights are finite goes to weights.json."""
    sys.path.insert(0, job["common"])
    import host
    run = host.Loop.run

    def noting(loop, quiet=False):
        try:
            run(loop, quiet)
        finally:
            finite = all(bool(torch.isfinite(p).all()) for p in loop.net.parameters())
            pathlib.Path(job["out"], "weights.json").write_text(json.dumps(finite))

    host.Loop.run = noting


def become(job):
    """The child: never returns."""
    code = 70
    try:
        os.setsid()
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(os.path.join(job["out"], f"{job['name']}.{name}"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644), number)
        os.chdir(job["out"])
        sys.argv = [job["file"], *job["arguments"]]
        if "baselines" in job:
            sys.path.insert(0, os.path.dirname(job["baselines"]))
            import baselines
            result = baselines.judge(job["file"], job["arguments"])
            pathlib.Path(job["out"], "baselines.json").write_text(json.dumps(result))
        else:
            attach(job)
            if job.get("weights"):
                note_weights(job)
            runpy.run_path(job["file"], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            import atexit
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def run(job):
    """The exit code of the job's child, "time" if it had to be ended."""
    pathlib.Path(job["out"]).mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        become(job)
    end = time.monotonic() + job["seconds"]
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


def main():
    for line in sys.stdin:
        print(json.dumps({"code": run(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
