"""The Python that tests start programs with: one forked from server.py where that is the same, else the real one (server.py says when).
CMake writes it as an executable `python` into a folder of the build; the server's socket lies beside it."""

import array
import json
import os
import resource
import signal
import socket
import sys

PYTHON = "@NANQUEST_PYTHON_EXECUTABLE@"
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def connected():
    """The server, if the command is one that it can be."""
    arguments = sys.argv[1:]
    if os.environ.get("NANQUEST_TEST_FRESH") == "1" or not arguments or arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        return None
    if len(arguments) < 2 if arguments[0] in ("-m", "-c") else not (arguments[0].endswith(".py") and os.path.isfile(arguments[0])):
        return None
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
    except OSError:
        return None
    return server


def handed_on():
    """The open files that a program would inherit."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            if os.get_inheritable(number):
                found.append(number)
        except OSError:  # the listing's own
            pass
    return found


def asked(server):
    """The process of the program; None where the server can't be it."""
    umask = os.umask(0)
    os.umask(umask)
    ignored = [number for number in PASSED_ON if signal.getsignal(number) is signal.SIG_IGN]
    files = handed_on()
    text = json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask, "ignored": ignored,
                       "files": files})
    try:
        server.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
        return json.loads(server.recv(1 << 16) or "{}").get("process")
    except OSError:
        return None


def end_as(status):
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if (number := os.WTERMSIG(status)) != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    server = connected()
    process = server and asked(server)
    if not process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execv(PYTHON, [PYTHON, *sys.argv[1:]])

    def pass_on(number, _):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass

    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    told = server.recv(1 << 16)
    end_as(json.loads(told)["status"] if told else 70 << 8)


main()
