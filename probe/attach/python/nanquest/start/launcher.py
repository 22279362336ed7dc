"""Runs a command as a child, as if it ran in place of this process: it has the terminal and gets the signals, and its exit status is
returned."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import sys
import time

from ..base import library, package
from ..base.say import say
from ..base.settings import RUN_ID, Settings

USAGE_ERROR, NOT_EXECUTABLE, NOT_FOUND = 2, 126, 127
PR_SET_PDEATHSIG = 1
SI_KERNEL = 0x80  # sent by the kernel
TYPED = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH}  # the terminal sends these to the whole group
STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
# Signals that a process causes itself, and signals that can't be blocked.
NOT_OURS = {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGABRT,
    signal.SIGTRAP,
    signal.SIGSYS,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGXCPU,
    signal.SIGTTIN,
    signal.SIGTTOU,
}
HEARD = signal.valid_signals() - NOT_OURS


def environment_of(settings: Settings) -> dict:
    """Sets up the environment so that every Python program attaches with `settings`, in a run of its own."""
    variables = settings.to_environment()
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != package.BOOTSTRAP]
    variables["PYTHONPATH"] = os.pathsep.join([package.BOOTSTRAP, *before])
    variables[RUN_ID] = f"{os.getpid()}-{int(time.time())}"
    return variables


def why_not(command: list, verb: str) -> tuple:
    """(line, exit code) for a command that can't be started under `nanquest VERB`; ("", 0) if it can."""
    if not command:
        return f"no command; write: nanquest {verb} -- python train.py", USAGE_ERROR
    if shutil.which(command[0]) is None:
        if os.path.exists(command[0]):
            return f"{command[0]}: not executable; write: nanquest {verb} -- python {command[0]}", NOT_EXECUTABLE
        return f"{command[0]}: no such command", NOT_FOUND
    if not library.served():
        missing = library.named() or package.LIBRARIES
        return (
            f"{missing} is missing; install the package, or build nanquest_attach_python and name it in NANQUEST_ATTACH_LIBRARY",
            USAGE_ERROR,
        )
    return "", 0


def run(command: list, environment: dict) -> int:
    """Runs it to its end. Returns its wait status; end_as ends this process in the same way."""
    sys.stdout.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the end of a child would not be reported
    launcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(command, environment, mask, on_child, launcher)
    try:
        return _wait(pid)
    except Exception as problem:  # noqa: BLE001 (the command goes on, whatever fails here)
        say(f"signals are no longer passed on: {problem}")
        return os.waitpid(pid, 0)[1]


def _become(command, environment, mask, on_child, launcher) -> None:
    try:
        # If the launcher is killed with SIGKILL, the command must die too.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            os._exit(NOT_EXECUTABLE)
        signal.signal(signal.SIGCHLD, on_child)
        _forget_python()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvpe(command[0], command, environment)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
    finally:
        os._exit(NOT_EXECUTABLE)


def _forget_python() -> None:
    """Restores signal handlers to what a shell would give a command."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def become(command: list) -> int:
    """Replaces this process by the command. Returns only if it can't be started: the exit code."""
    sys.stdout.flush()
    _forget_python()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
    return NOT_EXECUTABLE


def _wait(pid: int) -> int:
    while True:
        told = signal.sigwaitinfo(HEARD)
        if told.si_signo != signal.SIGCHLD:
            _pass_on(told, pid)
            continue
        # The first process of a container also gets orphans of other processes.
        while (ended := _next_of_children())[0]:
            if ended[0] == pid and os.WIFSTOPPED(ended[1]):
                _stop_with(pid, os.WSTOPSIG(ended[1]))
            elif ended[0] == pid:
                return ended[1]


def _next_of_children() -> tuple:
    return os.waitpid(-1, os.WNOHANG | os.WUNTRACED)


def _pass_on(told, pid: int) -> None:
    """A signal that a process sent to the whole group (as the terminal does) looks the same as one sent to the launcher alone. The
    command gets it twice rather than not at all."""
    try:
        if told.si_code != SI_KERNEL or told.si_signo not in TYPED or os.getpgid(pid) != os.getpgrp():
            os.kill(pid, told.si_signo)
    except ProcessLookupError:
        pass


def _stop_with(pid: int, number: int) -> None:
    """The shell that started the launcher must see its job stopped, and continues all of it together."""
    if number not in STOPS:
        return  # a SIGSTOP, which may be followed by a SIGCONT for the command only
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # stopped here until the shell continues the job
    signal.pthread_sigmask(signal.SIG_BLOCK, {number} & HEARD)
    os.kill(pid, signal.SIGCONT)


def end_as(status: int) -> int:
    """Ends by the signal that ended the command; otherwise returns its exit code."""
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command is in a process group of its own
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    return 128 + number  # the first process of a container is not killed by it
