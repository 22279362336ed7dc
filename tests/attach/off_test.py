"""NANQUEST=off: nothing of nanquest is imported, loaded, written or said, in whichever way a program would be attached."""

import shlex
import subprocess
import sys

from attached import HERE, PROGRAMS, AttachTest, by_day, main

MLP = PROGRAMS / "mlp.py"
ASKS = ("import sys, torch; l = torch.nn.Linear(2, 1); o = torch.optim.SGD(l.parameters(), lr=1.0)\n"
        "l(torch.full((1, 2), float('nan'))).sum().backward(); o.step()\n"
        "print('nanquest' in sys.modules, 'libnanquest' in open('/proc/self/maps').read())\n")


class OffTest(AttachTest):
    def assert_nothing(self, process, lines=0, code=0):
        self.assert_exit(process, code)
        self.assertEqual(len(self.probes_lines(process)), lines, process.stderr)
        self.assertEqual(sorted(path.name for path in self.scratch.iterdir() if path.suffix != ".py"), [])

    def shell(self, line, **more):
        return subprocess.run(["sh", "-c", line], cwd=self.scratch, text=True, capture_output=True, timeout=300,
                              env=self.environment(**more))

    def test_run(self):
        (self.scratch / "asks.py").write_text(ASKS)
        for value in by_day(("off",), ("0",)):
            with self.subTest(value):
                process = self.observed("asks.py", NANQUEST=value)
                self.assert_nothing(process, lines=1)
                self.assertEqual(process.stdout, "False False\n")
                self.assertIn(f"switched off by NANQUEST={value}: the program runs without the probe", process.stderr)
        # It needs nothing, and whatever ends the command ends it as ever.
        gone = self.nanquest("run", "--explain", "--", "sh", "-c", "kill -9 $$", NANQUEST="off", NANQUEST_ATTACH_LIBRARY="/nowhere")
        self.assert_nothing(gone, lines=1, code=-9)
        self.assertEqual(self.nanquest("run", "--", "no-such-command", NANQUEST="off").returncode, 127)
        (self.scratch / "empty.py").touch()
        (self.scratch / "empty.py").chmod(0o755)
        self.assertIn(self.nanquest("run", "--", "./empty.py", NANQUEST="off").returncode, (0, 126))

    def test_what_it_does_not_mean(self):
        (self.scratch / "asks.py").write_text(ASKS)
        for value in by_day(("on",), ("",)):
            with self.subTest(value):
                self.assertEqual(self.observed("asks.py", NANQUEST=value).stdout, "True True\n")

    def test_env(self):
        (self.scratch / "asks.py").write_text(ASKS)
        python = shlex.quote(sys.executable)
        process = self.shell(f'eval "$({python} -m nanquest env)"; {python} asks.py', NANQUEST="off")
        self.assert_nothing(process)
        self.assertEqual(process.stdout, "False False\n")
        # What an environment set earlier is off as well, and so is one program of many under a launcher.
        process = self.shell(f'eval "$({python} -m nanquest env)"; NANQUEST=off {python} asks.py')
        self.assert_nothing(process)
        self.assertEqual(process.stdout, "False False\n")
        process = self.nanquest("run", "--", "env", "NANQUEST=off", sys.executable, "asks.py")
        self.assert_nothing(process)

    def test_attach_and_the_callbacks(self):
        (self.scratch / "inside.py").write_text(
            "import sys, nanquest\nassert nanquest.attach(run_dir='run') is False\nassert 'torch' not in sys.modules\n"
            "import runpy\nsys.argv = ['mlp.py', 'sgd', '4', 'nan']\n"
            f"runpy.run_path({str(MLP)!r})\nassert nanquest.step() == 0 and not nanquest.record()\n"
            "assert 'libnanquest' not in open('/proc/self/maps').read() and 'nanquest.hear.hooks' not in sys.modules\n")
        self.assert_nothing(subprocess.run([sys.executable, "inside.py"], cwd=self.scratch, text=True, capture_output=True,
                                           timeout=300, env=self.environment(NANQUEST="off")))
        path = self.environment()["PYTHONPATH"] + ":" + str(HERE / "fakes")
        for way in ("huggingface", "lightning"):
            with self.subTest(way):
                self.assert_nothing(subprocess.run([sys.executable, PROGRAMS / "callbacks.py", "run", way], cwd=self.scratch, text=True,
                                                   capture_output=True, timeout=300, env=self.environment(NANQUEST="off", PYTHONPATH=path)))


if __name__ == "__main__":
    main()
