"""Shared by the tests of programs without Python."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attach"))

import attached  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("NANQUEST_TEST_PROGRAMS", attached.ROOT / "build" / "tests" / "program" / "programs"))


class ProgramTest(attached.AttachTest):
    def alone(self, *command):
        """The command without nanquest."""
        return subprocess.run([*map(str, command)], cwd=self.scratch, text=True, capture_output=True, timeout=300,
                              env=self.environment())

    def seen(self, *command, options=(), run_dir="run", **more):
        """The command under `nanquest run`."""
        return self.nanquest("run", "--run-dir", run_dir, *options, "--", *command, **more)

    def last_line(self, process):
        return self.probes_lines(process)[-1].removeprefix("nanquest: ")


main = attached.main
