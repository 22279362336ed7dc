"""What the tests of attached programs share: running a script with and without the probe, and asking replay."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "probe" / "attach" / "python"
PROGRAMS = HERE / "programs"
# What an update overwrites is kept however long that takes: on a busy machine one per cent of the time may not do.
ALWAYS = ("--keep-percent", "1000000")
FAKES = HERE / "fakes"
PACKAGES = os.environ.get("NANQUEST_TEST_PACKAGES", "")  # a folder with transformers and its like
BIN = pathlib.Path(os.environ.get("NANQUEST_BIN", ROOT / "build" / "bin"))
LIBRARY = pathlib.Path(os.environ.get("NANQUEST_ATTACH_LIBRARY", ROOT / "build" / "lib" / "libnanquest_attach.so"))
NIGHT = os.environ.get("NANQUEST_NIGHTLY") == "1"
nightly = unittest.skipUnless(NIGHT, "at night only (NANQUEST_NIGHTLY=1)")


def by_day(few, more):
    """Cases of a loop: `few` always, `more` at night too. Each start of a program is some five seconds of processor time."""
    return (*few, *more) if NIGHT else few


OPAQUE, RECOMPUTED = 1 << 3, 1 << 4  # flags of an op in a file


def ops_of(file):
    """(name, flags) of every op of a recording."""
    import h5py
    with h5py.File(file) as snapshot:
        text, ends = snapshot["strings/bytes"][:].tobytes(), snapshot["strings/offsets"][:]
        names, flags = snapshot["trace/ops/name"][:], snapshot["trace/ops/flags"][:]
        return [(text[ends[n]:ends[n + 1]].decode(), int(f)) for n, f in zip(names, flags)]


def stands(file):
    """Whether the standing trace recorded it."""
    import h5py
    with h5py.File(file) as snapshot:
        writer = snapshot.attrs["writer"]
        return "standing trace" in (writer.decode() if isinstance(writer, bytes) else writer)


class AttachTest(unittest.TestCase):
    """A test with a scratch folder, in which the programs run."""

    maxDiff = None

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-attach-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    @classmethod
    def shared_folder(cls):
        """One that the tests of a class share; removed after the last."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-attach-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def environment(self, **more):
        path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("NANQUEST_")}
        return {**clean, "PYTHONPATH": path, "NANQUEST_ATTACH_LIBRARY": str(LIBRARY), "OMP_NUM_THREADS": "1", **more}

    def nanquest(self, *arguments, **more):
        """`python -m nanquest ARGUMENTS`, finished."""
        return subprocess.run([sys.executable, "-m", "nanquest", *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=300, env=self.environment(**more))

    def plain(self, program, *arguments, PYTHONPATH=(), seconds=300):
        """The program alone: the same environment without the probe."""
        environment = self.environment()
        environment["PYTHONPATH"] = os.pathsep.join([*PYTHONPATH, environment["PYTHONPATH"]])
        return subprocess.run([sys.executable, str(program), *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=seconds, env=environment)

    def observed(self, program, *arguments, options=(), run_dir="run", **more):
        """The program under `nanquest run`."""
        return self.nanquest("run", "--run-dir", run_dir, *options, "--", sys.executable, program, *arguments, **more)

    def assert_exit(self, process, code=0):
        self.assertEqual(process.returncode, code, f"stdout: {process.stdout}\nstderr: {process.stderr}")

    @staticmethod
    def programs_lines(process):
        """What the program said on stderr, without the probe's lines."""
        return [line for line in process.stderr.splitlines() if not line.startswith("nanquest: ")]

    @staticmethod
    def probes_lines(process):
        """What the probe and the launcher said, without the launcher's first line."""
        return [line for line in process.stderr.splitlines() if line.startswith("nanquest: ") and not line.startswith("nanquest: level ")]

    def clear(self, run_dir):
        shutil.rmtree(self.scratch / run_dir, ignore_errors=True)

    def incidents(self, run_dir="run", finite=True):
        """Snapshots by step, first to last; with those of finite steps (a loss that diverges before it is NaN) unless told otherwise."""
        folder = self.scratch / run_dir / "incidents"
        files = sorted(p for p in folder.glob("step-*.h5") if not p.name.endswith(".replay.h5"))
        if finite:
            return files
        rows = json.loads((folder.parent / "manifest.json").read_text())["incidents"]
        spikes = {pathlib.Path(row["file"]).name for row in rows if row["gate"] == "spike"}
        return [file for file in files if file.name not in spikes]

    def replay(self, *arguments):
        """A sub-command's JSON."""
        process = subprocess.run([str(BIN / "nanquest-replay"), *map(str, arguments), "--json"], cwd=self.scratch,
                                 text=True, capture_output=True, timeout=300)
        self.assertTrue(process.stdout.strip(), process.stderr)
        return json.loads(process.stdout)

    def told(self, *arguments):
        """What nanquest-replay prints for a person."""
        command = [str(BIN / "nanquest-replay"), *map(str, arguments), "--no-files", "--quiet"]
        return subprocess.run(command, cwd=self.scratch, text=True, capture_output=True, timeout=300, check=False).stdout

    def assert_bit_exact(self, snapshot):
        verdict = self.replay("verify", snapshot)
        self.assertTrue(verdict["bit_exact"], verdict)
        self.assertGreater(verdict["outputs_compared"], 0)
        self.assertEqual(verdict["mismatched"], 0)
        return verdict


def importable(name):
    """Whether programs of a PackagesTest can import it."""
    return importlib.util.find_spec(name) is not None or (pathlib.Path(PACKAGES or os.devnull) / name).exists()


class PackagesTest(AttachTest):
    """Programs find the test packages, or fakes of them where there are none."""

    def environment(self, **more):
        found = super().environment(**more)
        packages = PACKAGES if importable("transformers") else str(FAKES)
        found["PYTHONPATH"] = os.pathsep.join(filter(None, [found["PYTHONPATH"], packages]))
        return dict(found, HF_HUB_OFFLINE="1")


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
