"""A finished wheel in fresh environments, one for each minor version of PyTorch in it: doctor finds nothing wrong, and one incident of a
program is recorded, replayed bit for bit and comes to the same verdict everywhere. By hand, as it downloads each PyTorch (gigabytes) unless a
folder that holds the package `torch` is given.

    minors.py WHEEL [MINOR=FOLDER ...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs" / "mlp.py"


def minors_in(wheel):
    with zipfile.ZipFile(wheel) as files:
        found = {name.split("/")[2].removeprefix("torch-") for name in files.namelist() if name.startswith("nanquest/lib/torch-")}
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def try_minor(wheel, minor, torch, folder):
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
    start("nanquest", "run", "--", "python", PROGRAM, "sgd", 4, "nan")
    verdict = json.loads(start("nanquest", "explain", "--json", code=1))["verdict"]
    if not verdict["reproduction"]["bit_exact"]:
        raise SystemExit(f"torch {minor}: not bit for bit: {verdict['reproduction']}")
    return seconds, verdict["cause"], verdict["culprit"]["op"]


def main(wheel, *given):
    folders, seen = dict(each.split("=", 1) for each in given), set()
    for minor in minors_in(wheel):
        with tempfile.TemporaryDirectory(prefix="nanquest-minor-") as folder:
            seconds, *verdict = try_minor(pathlib.Path(wheel).resolve(), minor, folders.get(minor, ""), pathlib.Path(folder))
        seen.add(tuple(verdict))
        print(f"torch {minor}: installed in {seconds:.1f} s, doctor has nothing to say, verdict {' '.join(verdict)}", flush=True)
    if len(seen) != 1:
        raise SystemExit("the verdicts differ")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
