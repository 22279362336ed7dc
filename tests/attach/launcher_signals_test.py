"""`nanquest run` stays above the program and is not in its way: signals, the terminal, job control, the way it ends."""

import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

from attached import AttachTest, main

COUNTS = """
import signal, sys, time
got = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
end = time.monotonic() + 20
while not got and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.5)
print("got", *got, flush=True)
sys.exit(5)
"""
DISPOSITIONS = "grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status"


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, command, folder, environment):
        self.text = ""
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(126)

    def wait_for(self, word, seconds=60):
        end = time.monotonic() + seconds
        while word not in self.text and time.monotonic() < end:
            if select.select([self.handle], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.handle, 65536).decode()
                except OSError:  # closed
                    break
        if word not in self.text:
            raise AssertionError(f"{word!r} did not come: {self.text!r}")

    def type(self, text):
        os.write(self.handle, text.encode())

    def interrupt_reading(self):
        """Ctrl-C at a Python that is in `input()`. One that comes between Python's last look for signals and its read is
        noticed at the next one only, with or without a launcher above it."""
        for _ in range(3):
            self.type("\x03")
            try:
                return self.wait_for("KeyboardInterrupt", 10)
            except AssertionError:
                pass
        raise AssertionError(f"three interrupts came to nothing: {self.text!r}")

    def end(self):
        """How the command ended, as an exit code."""
        while select.select([self.handle], [], [], 60)[0]:
            try:
                self.text += os.read(self.handle, 65536).decode()
            except OSError:
                break
        os.close(self.handle)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class SignalsTest(AttachTest):
    def command(self, *command):
        return [sys.executable, "-m", "nanquest", "run", "--", *map(str, command)]

    def start(self, *command):
        process = subprocess.Popen(self.command(*command), cwd=self.scratch, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(), start_new_session=True)
        self.addCleanup(process.kill)
        return process

    def terminal(self, *command):
        return Terminal([str(part) for part in command], self.scratch, self.environment())

    def test_what_is_sent_to_the_launcher_reaches_the_program(self):
        for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1", "SIGQUIT"):
            with self.subTest(name):
                process = self.start(sys.executable, "-c", COUNTS, name)
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(getattr(signal, name))
                out, _ = process.communicate(timeout=60)
                self.assertEqual((out, process.returncode), (f"got {name}\n", 5))

    def test_death_by_a_signal_is_passed_on(self):
        for name in ("SIGTERM", "SIGKILL", "SIGABRT", "SIGSEGV", "SIGINT", "SIGPIPE"):
            with self.subTest(name):
                process = self.nanquest("run", "--", "sh", "-c", f"kill -{name[3:]} $$")
                self.assert_exit(process, -getattr(signal, name))
                self.assertNotIn("Traceback", process.stderr)

    def test_the_program_dies_with_the_launcher(self):
        for name in ("SIGTERM", "SIGKILL"):
            with self.subTest(name):
                process = self.start("sh", "-c", "echo $$; exec sleep 60")
                pid = int(process.stdout.readline())
                process.send_signal(getattr(signal, name))
                process.communicate(timeout=20)
                self.assertEqual(process.returncode, -getattr(signal, name))
                end = time.monotonic() + 10
                while alive(pid) and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertFalse(alive(pid))

    def test_ignored_and_blocked_signals_are_those_of_a_plain_start(self):
        for before in (":", "trap '' HUP INT", "trap '' CHLD USR1"):
            with self.subTest(before):
                line = f"{before}; exec \"$@\""
                plain, seen = (subprocess.run(["sh", "-c", line, "sh", *command], cwd=self.scratch, text=True, timeout=60,
                                              capture_output=True, env=self.environment())
                               for command in (["sh", "-c", DISPOSITIONS], self.command("sh", "-c", DISPOSITIONS)))
                self.assertIn("SigIgn", plain.stdout)
                self.assertEqual(seen.stdout, plain.stdout)

    def test_interrupt_from_the_keyboard_comes_once_and_the_launcher_survives_it(self):
        terminal = self.terminal(*self.command(sys.executable, "-c", COUNTS, "SIGINT"))
        terminal.wait_for("ready")
        terminal.type("\x03")
        self.assertEqual(terminal.end(), 5, terminal.text)
        self.assertIn("got SIGINT\r\n", terminal.text)
        self.assertNotIn("KeyboardInterrupt", terminal.text)

    def test_interrupt_ends_a_program_as_it_would_without_us(self):
        terminal = self.terminal(*self.command(sys.executable, "-c", "print('ready', flush=True); input()"))
        terminal.wait_for("ready")
        terminal.interrupt_reading()
        self.assertEqual(terminal.end(), -signal.SIGINT)
        self.assertEqual(terminal.text.count("KeyboardInterrupt"), 1, terminal.text)

    def test_the_program_reads_from_the_terminal(self):
        terminal = self.terminal(*self.command(sys.executable, "-c", "print('hello', input('name? '))"))
        terminal.wait_for("name? ")
        terminal.type("you\n")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("hello you", terminal.text)

    def test_a_closed_terminal(self):
        terminal = self.terminal(*self.command("sh", "-c", "echo pid $$ ready; exec sleep 60"))
        terminal.wait_for("ready")
        pid = int(terminal.text.split("pid ")[1].split()[0])
        os.close(terminal.handle)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), -signal.SIGHUP)
        self.assertFalse(alive(pid))

    def test_job_control(self):
        command = " ".join(f"'{part}'" for part in self.command("sh", "-c", "echo ready; read line; echo read $line"))
        terminal = self.terminal("bash", "--norc", "-c", f"set -m; {command}; echo code $?; fg; echo code $?")
        terminal.wait_for("ready")
        terminal.type("\x1a")
        terminal.wait_for(f"code {128 + signal.SIGTSTP}")
        terminal.type("it\n")
        terminal.wait_for("read it")
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("code 0", terminal.text)

    def test_as_the_first_process_of_a_container(self):
        unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("this machine makes no process namespaces for us")
        # An orphan comes to the first process and must not stay as a zombie; a signal must get through to the program.
        script = ("import os, pathlib, subprocess, time\n"
                  "orphan = int(subprocess.run(['sh', '-c', 'sleep 0.2 >&- & echo $!'], capture_output=True).stdout)\n"
                  "until = time.monotonic() + 30\n"
                  "while pathlib.Path(f'/proc/{orphan}').exists() and time.monotonic() < until: time.sleep(0.02)\n"
                  "print('zombie', pathlib.Path(f'/proc/{orphan}').exists(), 'launcher', os.getppid())\nos.kill(1, 15)\ntime.sleep(20)\n")
        process = subprocess.run([*unshare, *self.command(sys.executable, "-c", script)], cwd=self.scratch, text=True,
                                 capture_output=True, timeout=60, env=self.environment())
        self.assertEqual(process.stdout, "zombie False launcher 1\n", process.stderr)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
