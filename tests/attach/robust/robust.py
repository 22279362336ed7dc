"""What the tests of rough circumstances share: the same program with and without the probe, and whole files afterwards."""

import json
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import attached  # noqa: E402
from attached import NIGHT, by_day, main, nightly  # noqa: E402,F401 (tests use them)

PROGRAMS = HERE / "programs"
LEVELS = ("guard", "trace", "watch")
# A shell starts what it puts into the background with SIGINT ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
FILES = re.compile(r"(earlier/[0-9TZ-]+/)?(manifest\.json|(?:series|ranges)\.r0\.h5|(?:incidents|recordings)/step-\d{8}\.r0(\.\d+)?\.h5)|\.process\.r0|\.lock\.r0")
TEMPORARY = re.compile(r".*\.tmp-\d+-\d+")


class RobustTest(attached.AttachTest):
    def program(self, name):
        return PROGRAMS / f"{name}.py"

    def assert_same(self, name, *arguments, level="watch", options=(), code=0, prefix=()):
        """The program does the same with the probe as without: output, exit code. Returns the observed process."""
        plain = self.run_in(prefix, self.program(name), *arguments)
        self.assert_exit(plain, code)
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", "--level", level, *options, "--",
                   sys.executable]
        process = self.run_in(prefix, self.program(name), *arguments, command=command)
        self.assert_exit(process, code)
        self.assertEqual(process.stdout, plain.stdout)
        self.assertEqual(self.last_of_the_programs(process), self.last_of_the_programs(plain))
        return process

    def run_in(self, prefix, *arguments, command=(sys.executable,)):
        return subprocess.run([*prefix, *command, *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=600, env=self.environment())

    @staticmethod
    def last_of_the_programs(process):
        """The last line on stderr that is neither the probe's nor a measurement: a traceback's exception."""
        lines = [line for line in attached.AttachTest.programs_lines(process) if not line.startswith("grown ")]
        return lines[-1] if lines else ""

    def assert_files(self, run_dir="run", *, killed=False):
        """Every file of the run is whole; temporary ones are there only after a kill. Returns the incidents."""
        import h5py

        root = self.scratch / run_dir
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            name = str(path.relative_to(root))
            if not (killed and TEMPORARY.fullmatch(name)):
                self.assertTrue(FILES.fullmatch(name), name)
        if (root / "manifest.json").exists() or not killed:
            manifest = json.loads((root / "manifest.json").read_text())
            for incident in manifest["incidents"]:
                if incident["file"]:
                    self.assertTrue((root / incident["file"]).exists(), incident)
        for name, table in (("series.r0.h5", "history/scalars/values"), ("ranges.r0.h5", "history/steps/values")):
            if (root / name).exists():
                with h5py.File(root / name, "r", swmr=killed) as series:
                    series[table][:]
        found = self.incidents(run_dir)
        for snapshot in found:
            with h5py.File(snapshot) as file:
                self.assertTrue(file.attrs["complete"], snapshot)
        return found

    def steps_in_series(self, run_dir="run"):
        import h5py

        with h5py.File(self.scratch / run_dir / "series.r0.h5", "r") as series:
            return [int(step) for step in series["history/scalars/values"][:, 0]]
