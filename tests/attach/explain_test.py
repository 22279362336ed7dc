"""`nanquest run --explain`, `nanquest replay` and `nanquest view`."""

import signal
import subprocess
import sys

from attached import BIN, PROGRAMS, AttachTest, main

MLP = PROGRAMS / "mlp.py"


class ExplainTest(AttachTest):
    def environment(self, **more):
        return super().environment(**{"NANQUEST_BIN": str(BIN), **more})

    def test_an_incident_is_explained_in_three_lines(self):
        process = self.nanquest("run", "--explain", "--", sys.executable, MLP, "sgd", 6, "nan")
        self.assert_exit(process)
        lines = self.probes_lines(process)
        (what,) = [line for line in lines if line.startswith("nanquest: step 6: BAD_DATA")]
        place = lines.index(what)
        self.assertIn("(input)", what)
        self.assertRegex(lines[place + 1], r"^nanquest: why: .*NaN")
        self.assertRegex(lines[place + 2], r"^nanquest: do: ")
        self.assertTrue((self.scratch / "nanquest-run" / "incidents" / "step-00000006.r0.json").exists())

    def test_it_is_said_beside_the_training(self):
        (self.scratch / "long.py").write_text(MLP.read_text() + "\nimport time\nprint('trained', flush=True)\ntime.sleep(300)\n")
        process = subprocess.Popen([sys.executable, "-m", "nanquest", "run", "--explain", "--", sys.executable, "long.py", "sgd", "6",
                                    "nan"], cwd=self.scratch, env=self.environment(), text=True, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        try:
            for line in process.stderr:
                if line.startswith("nanquest: do: "):
                    break
            self.assertIsNone(process.poll(), "said only at the end")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)

    def test_files_of_an_earlier_run_are_left_alone(self):
        self.assert_exit(self.nanquest("run", "--", sys.executable, MLP, "sgd", 6, "nan"))
        healthy = self.nanquest("run", "--explain", "--run-dir", "nanquest-run", "--", sys.executable, MLP, "sgd", 99, 0)
        self.assert_exit(healthy)
        self.assertFalse([line for line in self.probes_lines(healthy) if "why:" in line])

    def test_doors(self):
        self.assert_exit(self.nanquest("run", "--", sys.executable, MLP, "sgd", 6, "nan"))
        (path,) = self.incidents("nanquest-run")
        told = self.nanquest("replay", "-q", "--brief", "--no-files", path)
        self.assert_exit(told, 1)
        self.assertTrue(told.stdout.startswith("step 6: BAD_DATA"), told.stdout)
        self.assertIn("nanquest-replay", self.nanquest("replay", "--help").stdout)
        self.assertIn("nanquest-viewer", self.nanquest("view", "--help").stdout)
        self.assertIn("replay", self.nanquest("--help").stdout)

    def test_a_missing_program_says_what_to_do(self):
        environment = self.environment(NANQUEST_BIN=str(self.scratch), PATH="/usr/bin:/bin")
        for arguments in (["replay", "x.h5"], ["run", "--explain", "--", sys.executable, "-c", "pass"]):
            process = subprocess.run([sys.executable, "-m", "nanquest", *arguments], cwd=self.scratch, env=environment, text=True,
                                     capture_output=True, timeout=60)
            self.assertIn(process.returncode, (2, 127), process.stderr)
            self.assertIn("nanquest-replay is not there; install nanquest", process.stderr)


if __name__ == "__main__":
    main()
