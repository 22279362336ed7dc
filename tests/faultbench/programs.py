"""One program of the bench: recorded, replayed, judged."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import score

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "probe" / "attach" / "python"
BIN = pathlib.Path(os.environ.get("NANQUEST_BIN", ROOT / "build" / "bin"))
CPP = BIN / "faultbench" / "faultbench_cpp"
LIBRARY = pathlib.Path(os.environ.get("NANQUEST_ATTACH_LIBRARY", ROOT / "build" / "lib" / "libnanquest_attach.so"))


def environment():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NANQUEST_")}
    path = os.pathsep.join(filter(None, [str(PACKAGE), clean.get("PYTHONPATH", "")]))
    return dict(clean, PYTHONPATH=path, NANQUEST_ATTACH_LIBRARY=str(LIBRARY), OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")


class Recorder:
    """A process that runs jobs (recorder.py)."""

    def __init__(self, launcher):
        self.launcher = launcher
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([sys.executable, HERE / "recorder.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=quiet, text=True, env=environment(), bufsize=1)

    def run(self, job):
        if self.launcher and "level" in job and not job.get("weights"):
            return self.launch(job)
        self.process.stdin.write(json.dumps(job) + "\n")
        return json.loads(self.process.stdout.readline())["code"]

    @staticmethod
    def launch(job):
        out = pathlib.Path(job["out"])
        out.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "nanquest", "run", "--level", job["level"], "--on-incident", job["on_incident"],
                   "--run-dir", out / "run", "--", sys.executable, job["file"], *job["arguments"]]
        with open(out / f"{job['name']}.stdout", "w") as said, open(out / f"{job['name']}.stderr", "w") as told:
            try:
                return subprocess.run(command, cwd=out, stdout=said, stderr=told, env=environment(), timeout=job["seconds"]).returncode
            except subprocess.TimeoutExpired:
                return "time"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def replayed(file, seconds):
    """(verdict or None, what went wrong)."""
    command = [BIN / "nanquest-replay", file, "--json", "-q", "--no-files"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment())
        return json.loads(done.stdout), ""
    except subprocess.TimeoutExpired:
        return None, f"replay took more than {seconds} s"
    except ValueError:
        return None, f"replay ended with {done.returncode}: {done.stderr.strip()[-300:]}"


def programs_own_error(out):
    """A library may refuse NaN in a later step: the program then ends by itself, and that is no fault of anyone."""
    text = (out / "program.stderr").read_text(errors="replace")
    return "LinAlgError" in text


def played_cpp(play, level, options, out):
    """As `played`, of a C++ program: its guard undoes bad steps by itself."""
    command = [CPP, *play.arguments, "--level", level, "--run-dir", out / "run"]
    start = time.monotonic()
    result = {"incidents": [], "said": None, "finite_after": None, "broken": ""}
    try:
        done = subprocess.run(command, cwd=out, capture_output=True, text=True, timeout=options.seconds, env=environment())
        (out / "program.stdout").write_text(done.stdout)
        (out / "program.stderr").write_text(done.stderr)
        if done.returncode not in (0, 1) or "step " not in done.stdout:
            result["broken"] = f"the program ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        result["finite_after"] = "weight" not in done.stdout.splitlines()[-1] if level == "trace" and done.stdout else None
    except subprocess.TimeoutExpired:
        result["broken"] = f"the program took more than {options.seconds} s"
    result["record_s"] = round(time.monotonic() - start, 2)
    return replay_first(result, options, out)


def replay_first(result, options, out):
    """Adds the incidents that lie in `out`, and what is said of the first."""
    files = sorted(p for p in (out / "run" / "incidents").glob("step-*.h5") if not p.name.endswith(".replay.h5"))
    result["incidents"] = [int(re.match(r"step-(\d+)", p.name)[1]) for p in files]
    if files:
        start = time.monotonic()
        verdict, trouble = replayed(files[0], options.seconds)
        result["replay_s"] = round(time.monotonic() - start, 2)
        result["broken"] = result["broken"] or trouble
        if verdict is not None:
            (out / "verdict.json").write_text(json.dumps(verdict, indent=1))
            result["said"] = score.said_of(verdict)
    return result


def played(play, level, recorder, options, out):
    """The result of one program at one level (score.judged says what is in it), with `broken` for what must not happen."""
    job = {"file": play.file, "arguments": play.arguments, "out": str(out), "name": "program", "level": level,
           "on_incident": "continue", "seconds": options.seconds}
    start = time.monotonic()
    code = recorder.run(job)
    result = {"incidents": [], "said": None, "finite_after": None, "broken": ""}
    told = (out / "program.stderr").read_text(errors="replace")
    if "the probe is off" in told:
        result["broken"] = "the probe is off"
    elif code != 0 and not programs_own_error(out):
        result["broken"] = f"the program ended with {code}: {told.strip()[-300:]}"
    elif not (out / "run" / "manifest.json").exists():  # no alarm of a probe that isn't there counts for nothing
        result["broken"] = f"nothing was observed: {told.strip()[-300:]}"
    result["record_s"] = round(time.monotonic() - start, 2)
    replay_first(result, options, out)
    if level == "trace" and play.case.truth.cause and not options.no_caught:
        recorder.run(dict(job, out=str(out / "skip"), on_incident="skip", weights=True, common=str(HERE / "common")))
        noted = out / "skip" / "weights.json"
        result["finite_after"] = json.loads(noted.read_text()) if noted.exists() else None
    return result


def row_of(play, level, result):
    truth, program = play.case.truth, play.program
    steps = program.strike if truth.cause else program.strike + 1 + program.after
    marks = score.judged(play, level, result)
    return {"name": play.name, "family": play.family, "label": truth.cause, "level": level, "marks": marks, "healthy_steps": steps,
            "differences": score.differences(play, level, result, marks), **result}


def done(play, level, recorder, options, out):
    """The row of one job."""
    out.mkdir(parents=True, exist_ok=True)
    if play.cpp:
        return row_of(play, level, played_cpp(play, level, options, out))
    if level != "baselines":
        return row_of(play, level, played(play, level, recorder, options, out))
    job = {"file": play.file, "arguments": play.arguments, "out": str(out), "name": "program", "seconds": options.seconds}
    code = recorder.run(dict(job, baselines=str(HERE / "baselines.py")))
    noted = out / "baselines.json"
    return {"family": play.family, "label": play.case.truth.cause, "name": play.name, "level": level,
            "broken": "" if noted.exists() else f"the baselines ended with {code}",
            "baselines": json.loads(noted.read_text()) if noted.exists() else None}
