"""A finished wheel in fresh environments, one for each minor version of PyTorch in it: doctor finds nothing wrong, and one incident of a
program is recorded, replayed bit for bit and comes to the same verdict everywhere. By hand, as it downloads each PyTorch (gigabytes) unless a
folder that holds the package `torch` is given. --record: the six failures of ../minors too, each with its verdict, packed as RECORDED/MINOR.tar.xz.

    minors.py WHEEL [--record RECORDED] [MINOR=FOLDER ...]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = TESTS / "programs" / "mlp.py"
sys.path.insert(0, str(TESTS / "minors"))
from minors_test import VERDICTS  # noqa: E402


def minors_in(wheel):
    with zipfile.ZipFile(wheel) as files:
        found = {name.split("/")[2].removeprefix("torch-") for name in files.namelist() if name.startswith("nanquest/lib/torch-")}
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def try_minor(wheel, minor, torch, folder, recorded):
    """(seconds that pip took, the cause, the op)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NANQUEST", "PYTHON"))} | {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def start(*command, code=0):
        done = subprocess.run([str(folder / "bin" / command[0]), *map(str, command[1:])], cwd=folder, env=environment, text=True, capture_output=True,
                              check=False)
        if done.returncode != code:
            raise SystemExit(f"torch {minor}: {command} ended with {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    begun = time.monotonic()
    start("pip", "--disable-pip-version-check", "install", "--quiet", wheel)
    seconds = time.monotonic() - begun
    if torch:
        next(folder.glob("lib/python3.*/site-packages")).joinpath("torch.pth").write_text("\n".join(torch.split(":")) + "\n")
    else:
        start("pip", "--disable-pip-version-check", "install", "--quiet", f"torch=={minor}.*")
    doctor = json.loads(start("nanquest", "doctor", "--json"))
    wrong = [each for each in doctor["findings"] if each["name"] in ("torch", "probe", "attached", "recorded", "nanquest-replay") and each["state"] != "ok"]
    if wrong:
        raise SystemExit(f"torch {minor}: {wrong}")
    start("nanquest-trainer", "--version")
    start("nanquest", "run", "--", "python", PROGRAM, "sgd", 4, "nan")
    verdict = json.loads(start("nanquest", "explain", "--json", code=1))["verdict"]
    if not verdict["reproduction"]["bit_exact"]:
        raise SystemExit(f"torch {minor}: not bit for bit: {verdict['reproduction']}")
    if recorded:
        record_six(start, folder, pathlib.Path(recorded) / f"{minor}.tar.xz")
    return seconds, verdict["cause"], verdict["culprit"]["op"]


def record_six(start, folder, archive):
    """Each comes to its verdict here; the files go into `archive`."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(TESTS / "minors" / "six.py", folder)  # files say where their program lies
    with tarfile.open(archive, "w:xz") as files:
        for kind, right in VERDICTS.items():
            start("nanquest", "run", "--run-dir", kind, "--", "python", "six.py", kind)
            file = next((folder / kind / "incidents").glob("step-*.h5"))
            verdict = json.loads(start("nanquest", "replay", file, "-q", "--json", "--no-files", code=1))
            if (verdict["cause"], verdict["culprit"]["op"], verdict["step"]) != right or not verdict["reproduction"]["bit_exact"]:
                raise SystemExit(f"{archive.name}: {kind}: {verdict['cause']} {verdict['culprit']} {verdict['reproduction']}")
            files.add(file, f"{kind}.h5")


def main(wheel, *given):
    recorded = ""
    if given[:1] == ("--record",):
        _, recorded, *given = given
    folders, seen = dict(each.split("=", 1) for each in given), set()
    for minor in minors_in(wheel):
        with tempfile.TemporaryDirectory(prefix="nanquest-minor-") as folder:
            seconds, *verdict = try_minor(pathlib.Path(wheel).resolve(), minor, folders.get(minor, ""), pathlib.Path(folder), recorded)
        seen.add(tuple(verdict))
        print(f"torch {minor}: installed in {seconds:.1f} s, doctor has nothing to say, verdict {' '.join(verdict)}", flush=True)
    if len(seen) != 1:
        raise SystemExit("the verdicts differ")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
