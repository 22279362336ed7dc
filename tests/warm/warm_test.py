"""A program is the same whether Python starts it or the server forks it: each is run both ways and compared.

    warm_test.py PYTHON      # the client beside a server that answers
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WARM = pathlib.Path(sys.argv.pop(1))
REAL = sys.executable
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "probe" / "attach" / "python"

# All that a program may ask of its start. Paths of the scratch folder and of the interpreter are the same in both.
ASKS = """
import os, signal, sys
print("torch" in sys.modules, any(name.startswith("torch.") for name in sys.modules), __name__, __builtins__ is not None)
print(sys.argv, sys.orig_argv[1:], sys.path, sys.prefix, sys.flags.optimize, sys.dont_write_bytecode)
print(os.getcwd(), sorted((k, v) for k, v in os.environ.items() if k != "_"), os.umask(0o22), globals().get("__file__"))
print([str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ, signal.SIGHUP)],
      signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering,
      sys.stdin.read(), sorted(os.listdir("/proc/self/fd"))[:4], len(os.listdir("/proc/self/task")))
import torch.nn.functional
print(torch.__version__, torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled(),
      torch.__spec__.name, torch.optim.SGD.__module__, sys.modules["torch"] is torch)
"""
WAITS = "import time, sys; print('here', flush=True); time.sleep(100)"


class WarmTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name).resolve()

    def ran(self, python, arguments, **more):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
        environment.pop("PYTHONUNBUFFERED", None)
        done = subprocess.run([python, *map(str, arguments)], cwd=self.scratch, env=environment, input="what it reads", capture_output=True,
                              text=True)
        return done.returncode, done.stdout, done.stderr

    def assert_same(self, *arguments, **more):
        real, warm = self.ran(REAL, arguments, **more), self.ran(WARM, arguments, **more)
        self.assertEqual(real, warm)
        return real

    def test_it_is_forked_here(self):
        """Else every comparison below would be one of Python with itself."""
        code, said, _ = self.ran(WARM, ["-c", "import sys; print(sys.executable)"])
        self.assertEqual((code, said.strip()), (0, str(WARM)))
        parent = self.ran(WARM, ["-c", "import os; print(open(f'/proc/{os.getppid()}/cmdline').read())"])[1]
        self.assertIn("server.py", parent)

    def test_a_script_sees_what_it_would_see(self):
        (self.scratch / "folder").mkdir()
        (self.scratch / "folder" / "asks.py").write_text(ASKS)
        (self.scratch / "link.py").symlink_to("folder/asks.py")
        more = {"PYTHONPATH": f"{self.scratch}{os.pathsep}elsewhere", "PYTHONDONTWRITEBYTECODE": "1", "SOME": "thing"}
        for name in ("folder/asks.py", "link.py"):
            code, said, _ = self.assert_same(name, "a", "-b", **more)
            self.assertEqual((code, said.count("\n")), (0, 6))

    def test_a_module_and_a_line_see_what_they_would_see(self):
        (self.scratch / "asks.py").write_text(ASKS)
        self.assertEqual(self.assert_same("-m", "asks", "a")[0], 0)
        self.assertEqual(self.assert_same("-c", ASKS, "a")[0], 0)

    def test_random_numbers_differ_from_program_to_program(self):
        ask = "import random, torch, numpy; print(torch.initial_seed(), torch.rand(1).item(), numpy.random.rand(), random.random())"
        one, other = (self.ran(WARM, ["-c", ask])[1].split() for _ in range(2))
        self.assertEqual(len(one), 4)
        self.assertFalse(set(one) & set(other))

    def test_the_start_file_of_the_environment_runs_first(self):
        (self.scratch / "here").mkdir()
        (self.scratch / "here" / "sitecustomize.py").write_text("import sys; print('first', sys.argv, 'torch' in sys.modules)")
        self.assertTrue(self.assert_same("-c", "print('then')", PYTHONPATH=str(self.scratch / "here"))[1].startswith("first"))

    def test_it_ends_as_it_would_end(self):
        ends = ("pass", "import sys; sys.exit(3)", "raise SystemExit('no')", "import sys; sys.exit(-1)", "import os; os._exit(9)", "1/0",
                "def f():\n    raise ValueError('é')\nf()", "import os; os.abort()", "import os; os.kill(os.getpid(), 15)", "raise SystemExit",
                "import atexit, sys; atexit.register(print, 'bye'); print('out'); print('err', file=sys.stderr); 1/0",
                "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()",
                "import sys; sys.excepthook = lambda *_: print('hooked'); 1/0", "import sys; sys.stdout.close()", "not python", "import nowhere",
                "import sys; sys.stdout = open('/dev/full', 'w'); print('x')", "import signal, os; os.kill(os.getpid(), signal.SIGKILL)")
        codes = [self.assert_same("-c", text)[0] for text in ends]
        self.assertEqual(codes, [0, 3, 1, 255, 9, 1, 1, -6, -15, 0, 1, 0, 1, 0, 1, 1, 120, -9])
        (self.scratch / "wrong.py").write_text("def f():\n    return 1 / 0\n\n\nf()\n")
        self.assert_same("wrong.py")
        self.assertEqual(self.ran(WARM, ["nowhere.py"])[0], self.ran(REAL, ["nowhere.py"])[0])
        self.assertEqual(self.ran(WARM, ["-c", "raise KeyboardInterrupt"])[0], -signal.SIGINT)

    def test_what_is_settled_at_a_start_starts_an_interpreter(self):
        for more in ({"OMP_NUM_THREADS": "2"}, {"PYTHONHASHSEED": "7"}, {"TORCH_LOGS": "dynamo"}, {"NANQUEST_TEST_FRESH": "1"}):
            code, said, told = self.ran(WARM, ["-c", "import os, sys, torch; print(sys.executable, torch.get_num_threads())"], **more)
            self.assertEqual((code, said.split()), (0, [REAL, more.get("OMP_NUM_THREADS", "1")]), told)
        self.assertEqual(self.ran(WARM, ["-W", "error", "-c", "import sys; print(sys.executable)"])[1].strip(), REAL)

    def test_files_that_are_handed_on(self):
        for python in (REAL, WARM):
            read, write = os.pipe()
            subprocess.run([python, "-c", f"import os; os.write({write}, b'said'); print('out')"], pass_fds=[write], check=True,
                           capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            os.close(write)
            self.assertEqual(os.read(read, 100), b"said")
            self.assertEqual(os.read(read, 100), b"")
            os.close(read)

    def started(self):
        process = subprocess.Popen([WARM, "-c", WAITS], env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "here\n")
        return process

    def test_signals_reach_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.started()
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)

    def test_it_does_not_outlive_what_was_started(self):
        process = self.started()
        process.kill()
        process.wait()
        self.assertEqual(process.stdout.read(), "")  # which ends when the program's own end of the pipe is closed

    def test_a_program_under_the_probe(self):
        """The launcher, its child, and what the probe finds there."""
        (self.scratch / "train.py").write_text(
            "import sys\nassert 'torch' not in sys.modules and 'nanquest' not in sys.modules\nimport torch\n"
            "assert 'nanquest' in sys.modules\nmodel = torch.nn.Linear(2, 2)\no = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "for step in range(3):\n    o.zero_grad()\n    (model(torch.ones(2)).sum() * (float('nan') if step == 2 else 1)).backward()\n    o.step()\n"
            "raise SystemExit(5)\n")
        said = []
        for python, run in ((REAL, "real"), (WARM, "warm")):
            arguments = ["-m", "nanquest", "run", "--run-dir", "run", "--", python, "train.py"]
            code, out, told = self.ran(python, arguments, PYTHONPATH=str(PACKAGE))
            files = sorted(path.relative_to(self.scratch / "run") for path in (self.scratch / "run").rglob("*"))
            (self.scratch / "run").rename(self.scratch / run)
            said.append((code, out, told, files))
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0][0], 5)
        self.assertIn("1 incident in 3 steps", said[0][2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
