"""Shared by the end-to-end tests: where the programs are, how to run them, what a failure must look like."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("NANQUEST_BIN", ROOT / "build" / "bin"))
STORY = pathlib.Path(os.environ.get("NANQUEST_STORY", ROOT / "runs" / "story"))

OK, FINDING, USAGE, BAD_FILE, NON_FINITE = 0, 1, 2, 3, 4


class ProgramTest(unittest.TestCase):
    """A test with a temporary folder."""

    maxDiff = None

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-e2e-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def run_program(self, program, *arguments, cwd=None, timeout=240, prefix=()):
        """Runs nanquest-<program>; returns the finished process with text in stdout and stderr."""
        command = [*prefix, str(BIN / f"nanquest-{program}"), *map(str, arguments)]
        environment = dict(os.environ, NO_COLOR="1")
        return subprocess.run(command, cwd=cwd or self.scratch, capture_output=True, text=True, timeout=timeout,
                              env=environment, errors="replace")

    def assert_exit(self, process, code):
        self.assertEqual(process.returncode, code,
                         f"{' '.join(process.args)}\nstdout: {process.stdout}\nstderr: {process.stderr}")

    def assert_refused(self, process, code, *words):
        """The program ended with `code`, printed no result, and gave the reason in one line that holds all the words."""
        self.assert_exit(process, code)
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        for word in words:
            self.assertTrue(any(word.lower() in line.lower() for line in lines), f"{word!r} is not in: {process.stderr}")
        errors = [line for line in lines if all(word.lower() in line.lower() for word in words)]
        self.assertEqual(len(errors), 1, f"one line should name {words}: {process.stderr}")
        self.assertNotIn("terminate called", process.stderr)

    def assert_help(self, program):
        """--help shows an example and ends with 0, --version names the program and what it was built with."""
        process = self.run_program(program, "--help")
        self.assert_exit(process, OK)
        self.assertIn(f"nanquest-{program}", process.stdout)
        self.assertIn("xample", process.stdout)
        process = self.run_program(program, "--version")
        self.assert_exit(process, OK)
        for word in ("nanquest", "HDF5", "format"):
            self.assertIn(word, process.stdout)
        self.assertEqual(process.stderr, "")

    def assert_nothing_half_written(self, folder):
        """No temporary files remain."""
        leftovers = [str(path) for path in pathlib.Path(folder).rglob("*")
                     if path.is_file() and (path.suffix in (".tmp", ".part", ".new") or ".tmp" in path.name)]
        self.assertEqual(leftovers, [])


def inside_small_disk(script, size="2m", options=""):
    """The command that runs a shell script with a tmpfs of this size mounted on $1, invisible to other processes."""
    mount = f'mount -t tmpfs -o size={size}{options} tmpfs "$1" && {script}'
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return [*unshare, "sh", "-c", mount, "sh"]


def can_mount():
    """Whether a test may mount a disk on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run([*inside_small_disk("true"), folder], capture_output=True).returncode == 0
        except FileNotFoundError:
            return False


def incident_of(run):
    """The snapshot of the first incident in a run directory."""
    found = sorted(path for path in (pathlib.Path(run) / "incidents").glob("step-*.h5")
                   if not path.name.endswith(".replay.h5"))
    assert found, f"{run} has no incident; the demo test makes it"
    return found[0]


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
