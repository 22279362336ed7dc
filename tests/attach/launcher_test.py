"""`nanquest run`: exit codes, environments that the probe does not fit, and helpful errors."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from attached import LIBRARY, PROGRAMS, AttachTest, main

MLP = PROGRAMS / "mlp.py"


class LauncherTest(AttachTest):
    def assert_refused(self, process, code, *words):
        self.assert_exit(process, code)
        for word in words:
            self.assertIn(word, process.stderr)
        self.assertNotIn("Traceback", process.stderr)

    def test_exit_codes_and_signals_are_the_programs(self):
        self.assert_exit(self.nanquest("run", "--", sys.executable, "-c", "raise SystemExit(23)"), 23)
        self.assert_exit(self.nanquest("run", "--", sys.executable, "-c", "1/0"), 1)
        killed = self.nanquest("run", "--", sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
        self.assert_exit(killed, -signal.SIGTERM)

    def test_usage(self):
        self.assert_refused(self.nanquest("run"), 2, "no command")
        self.assert_refused(self.nanquest("run", "--lvel", "watch", "--", "true"), 2, "unknown option --lvel; did you mean --level?")
        (self.scratch / "file").touch()
        told = "no files can be written to file/run: Not a directory; give another directory with --run-dir"
        self.assert_refused(self.nanquest("run", "--on-incident", "stop", "--run-dir", "file/run", "--", "touch", "started"), 2, told)
        self.assertFalse((self.scratch / "started").exists())
        self.assert_refused(self.nanquest("run", "--", "no-such-program-here"), 127, "no-such-program-here")
        self.assert_refused(self.nanquest("run", "--level", "loud", "--", "true"), 2, "loud", "guard")
        self.assert_refused(self.nanquest("run", "--watch-every", "-1", "--", "true"), 2, "-1")
        self.assert_refused(self.nanquest("run", "--", str(MLP)), 126, "python")
        help_text = self.nanquest("run", "--help")
        self.assert_exit(help_text)
        self.assertIn("nanquest run -- python train.py", help_text.stdout)
        version = self.nanquest("--version")
        self.assert_exit(version)
        self.assertRegex(version.stdout, r"nanquest \d+\.\d+\.\d+, for PyTorch \d+\.\d+")

    def test_torch_that_can_not_be_imported(self):
        (self.scratch / "torch.py").write_text("raise RuntimeError('broken install')")
        code = "try:\n import torch\nexcept RuntimeError as e:\n print(e)"
        process = self.nanquest("run", "--", sys.executable, "-c", code)
        self.assert_exit(process)
        self.assertEqual(process.stdout, "broken install\n")
        self.assertEqual(len(self.probes_lines(process)), 1, process.stderr)
        self.assertIn("torch was not imported", process.stderr)

    def test_another_torch_version(self):
        shutil.copy(LIBRARY, self.scratch / LIBRARY.name)
        (self.scratch / LIBRARY.name).with_suffix(".version").write_text("1.2.3\n")
        environment = self.environment()
        environment["NANQUEST_ATTACH_LIBRARY"] = str(self.scratch / LIBRARY.name)
        process = subprocess.run([sys.executable, "-m", "nanquest", "run", "--", sys.executable, str(MLP), "sgd", "4", "nan"],
                                 cwd=self.scratch, env=environment, text=True, capture_output=True, timeout=300)
        self.assert_exit(process)
        self.assertEqual(len(self.probes_lines(process)), 1, process.stderr)
        self.assertIn("built for PyTorch 1.2.3", process.stderr)
        self.assertFalse((self.scratch / "nanquest-run").exists())

    def test_a_sitecustomize_that_was_there_still_runs(self):
        folder = self.scratch / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 41\n")
        environment = self.environment()
        environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(folder)])
        process = subprocess.run([sys.executable, "-m", "nanquest", "run", "--", sys.executable, "-c", "print(mine + 1)"],
                                 cwd=self.scratch, env=environment, text=True, capture_output=True, timeout=60)
        self.assert_exit(process)
        self.assertEqual(process.stdout, "42\n")

    def test_two_processes_of_one_run_have_their_own_files(self):
        line = f"{sys.executable} {MLP} sgd 4 nan; {sys.executable} {MLP} sgd 2 nan"
        process = self.nanquest("run", "--level", "watch", "--run-dir", "run", "--", "sh", "-c", line)
        self.assert_exit(process)
        self.assertEqual(self.incidents()[0].name, "step-00000004.r0.h5")
        others = list((self.scratch / "run").glob("process-*"))
        self.assertEqual(len(others), 1)
        self.assertEqual(self.incidents(pathlib.Path("run") / others[0].name)[0].name, "step-00000002.r0.h5")

    def test_environment_for_schedulers(self):
        process = self.nanquest("env", "--run-dir", "job", "--level", "watch")
        self.assert_exit(process)
        script = f"{process.stdout}\n{sys.executable} {MLP} sgd 4 nan"
        run = subprocess.run(["sh", "-c", script], cwd=self.scratch, env=self.environment(), text=True,
                             capture_output=True, timeout=300)
        self.assert_exit(run)
        self.assertEqual(self.incidents("job")[0].name, "step-00000004.r0.h5")

    def test_a_variable_that_makes_no_sense(self):
        process = self.nanquest("env")
        script = f"{process.stdout}\nNANQUEST_LEVEL=loud {sys.executable} {MLP} sgd 9 0"
        run = subprocess.run(["sh", "-c", script], cwd=self.scratch, env=self.environment(), text=True,
                             capture_output=True, timeout=300)
        self.assert_exit(run)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("loud", run.stderr)


if __name__ == "__main__":
    main()
