"""A Python that has imported torch, and becomes any Python program by forking: an import of torch is three seconds of processor time,
and tests start hundreds of programs.

    server.py SOCKET           # starts one unless one answers there; it ends when the parent of who called has ended, and nobody is left

To start a program, run `python` beside the socket (client.py) as if that were the interpreter. It hands over its arguments,
environment, folder and open files, waits, passes signals on, and ends as the program does; to the program it is
sys.executable. Where the environment asks for what is settled at a start (settled, below), or where no server answers, it becomes
the real interpreter instead.

What a program sees is what it would see in an interpreter of its own: torch is not imported until the program imports it (Hidden),
PYTHONPATH, sitecustomize, sys.argv, signals, streams, exit codes and atexit are those of a start. What differs: torch._dynamo is there
as soon as torch is; the seed of hashes is the same in all programs of one server; memory is shared with it; the interpreter is not
taken down at the end, which is another second. Tests of starting and ending use the real interpreter, and by night all do
(NANQUEST_TEST_FRESH=1).
"""

import array
import atexit
import fcntl
import gc
import importlib
import importlib.machinery
import io
import json
import os
import re
import runpy
import selectors
import signal
import socket
import sys
import threading
import types

SETTLED = re.compile(r"PYTHON(?!PATH$|DONTWRITEBYTECODE$|UNBUFFERED$)|[GK]?OMP_|MKL_|OPENBLAS_|LD_|MALLOC_|GLIBC_|ATEN_|LC_|LANG|CUDA_"
                     r"|TORCH(?!ELASTIC_|_NCCL_|INDUCTOR_CACHE_DIR$)|PYTORCH_")
BUFFER, FILES = 1 << 20, 250  # bytes of a request, and files with it: as many as Linux takes


def settled(environment):
    """The variables that Python, torch and the libraries under them read when they start."""
    return {name: value for name, value in environment.items() if SETTLED.match(name)}


class Hidden:
    """torch, as a program finds it that has not imported it: a loader that only brings back what is there."""

    def __init__(self):
        self._modules = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torch"}
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        spec.loader.create_module = lambda spec: self._modules["torch"]
        spec.loader.exec_module = self._bring_back
        return spec

    def _bring_back(self, module):
        sys.modules.update(self._modules)
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def streams(unbuffered):
    """sys.stdin, sys.stdout and sys.stderr anew, as at a start."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old, errors = getattr(sys, name), "backslashreplace" if name == "stderr" else getattr(sys, name).errors
        if name == "stdin":
            new = io.TextIOWrapper(open(0, "rb", closefd=False), old.encoding, errors)
        else:
            raw = open(number, "wb", 0 if unbuffered else -1, closefd=False)
            new = io.TextIOWrapper(raw, old.encoding, errors, line_buffering=name == "stderr" or raw.isatty(), write_through=unbuffered)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def become(asked, files):
    """This process, just forked, as a start of Python with `asked["arguments"]`; returns what is to be run as the program."""
    os.setsid()
    for number in {0, 1, 2}.difference(asked["files"]):
        os.close(number)
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD, 1000) for file in files]  # none of them has a number that another one is to have
    for file in files:
        os.close(file)
    for number, file in zip(asked["files"], aside):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["folder"])
    os.umask(asked["umask"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    streams(bool(os.environ.get("PYTHONUNBUFFERED")))
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.modules["torch"].default_generator.seed()
    sys.modules["numpy"].random.seed()
    Hidden()
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    first, *rest = asked["arguments"]
    by_option = first in ("-m", "-c")
    sys.argv = [first, *(rest[1:] if by_option else rest)]
    sys.orig_argv = [sys.executable, first, *rest]
    sys.path[:] = dict.fromkeys([*map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))), *sys.path])
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    for name in ("sitecustomize", "usercustomize"):
        sys.modules.pop(name, None)
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    if by_option:
        sys.path.insert(0, os.getcwd() if first == "-m" else "")
        return (lambda: runpy._run_module_as_main(rest[0])) if first == "-m" else (lambda: exec(compile(rest[0], "<string>", "exec"), vars(main)))
    sys.path.insert(0, os.path.dirname(os.path.realpath(first)))
    main.__file__, main.__cached__ = os.path.abspath(first), None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)

    def script():
        with open(first, "rb") as file:
            exec(compile(file.read(), main.__file__, "exec"), vars(main))
    return script


class Server:
    """One process, without threads: a fork takes none along."""

    def __init__(self, path, until):
        self._events = selectors.DefaultSelector()
        self._children = {}  # process -> the connection of who asked for it
        self._asked, self._over = socket.socketpair()
        for end in (self._asked, self._over):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        signal.set_wakeup_fd(self._over.fileno(), warn_on_full_buffer=False)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(path)
        self._listening.listen(64)
        self._ending, self._path = False, path
        self._events.register(self._asked, selectors.EVENT_READ, self._reap)
        self._events.register(self._listening, selectors.EVENT_READ, self._accept)
        self._watched = os.pidfd_open(until)
        self._events.register(self._watched, selectors.EVENT_READ, self._end)

    def serve(self):
        """None when it is over; in a forked child the program that it is to be."""
        while not self._ending or self._children:
            for key, _ in self._events.select():
                if program := key.data():
                    return program
        return None

    def _end(self):
        if not self._ending:
            self._ending = True
            os.unlink(self._path)
            self._events.unregister(self._listening)
            self._events.unregister(self._watched)

    def _accept(self):
        connection = self._listening.accept()[0]
        self._events.register(connection, selectors.EVENT_READ, lambda: self._hear(connection))

    def _hear(self, connection):
        files = array.array("i")
        try:
            text, more, _, _ = connection.recvmsg(BUFFER, socket.CMSG_SPACE(FILES * files.itemsize))
        except ConnectionError:
            text, more = b"", []
        for _, _, data in more:
            files.frombytes(data)
        if not text:  # who asked is gone, and so is its program
            self._forget(connection)
            return None
        asked = json.loads(text)
        if settled(asked["environment"]) != settled(os.environ):
            connection.send(b"{}")
        elif (child := os.fork()) == 0:
            self._leave()
            return become(asked, files)
        else:
            self._children[child] = connection
            connection.send(json.dumps({"process": child}).encode())
        for file in files:
            os.close(file)
        return None

    def _forget(self, connection):
        self._events.unregister(connection)
        connection.close()
        for child, other in list(self._children.items()):
            if other is connection:
                os.killpg(child, signal.SIGKILL)

    def _reap(self):
        try:
            self._asked.recv(4096)
        except BlockingIOError:
            pass
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            connection = self._children.pop(child)
            try:
                connection.send(json.dumps({"status": status}).encode())
            except OSError:
                pass

    def _leave(self):
        """In a child: nothing of the server is left."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for key in list(self._events.get_map().values()):
            os.close(key.fileobj if isinstance(key.fileobj, int) else key.fileobj.detach())
        self._over.close()
        self._events.close()


def answers(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        try:
            client.connect(path)
            return True
        except OSError:
            return False


def main():
    os.closerange(3, 1 << 16)
    path, until, (ready, made) = sys.argv[1], os.getppid(), os.pipe()
    if answers(path):
        return None
    if os.fork():  # who called waits until there is a server
        os.close(made)
        raise SystemExit(os.read(ready, 1) != b".")
    os.setsid()
    sys.path[:] = [folder for folder in sys.path[1:] if folder not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    import torch  # noqa: F401
    import torch._dynamo  # what the first optimizer imports
    if len(os.listdir("/proc/self/task")) != 1:
        raise SystemExit("server.py: importing torch has started threads, which a fork would lose")
    gc.freeze()  # or each program's collector would copy all of it
    sys.executable = os.path.join(os.path.dirname(path), "python")
    if os.path.exists(path):
        os.unlink(path)
    server = Server(path, until)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.write(made, b".")
    for number in (nothing, ready, made):
        os.close(number)
    return server.serve()


def shown(error):
    """The error that ends the program, printed as the interpreter does it: without what stands here."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def code_of(end):
    """The exit code of a SystemExit."""
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def run(program):
    """To its end, which is this process's."""
    code, interrupted = 0, False
    try:
        program()
    except SystemExit as end:
        code = code_of(end)
    except BaseException as error:
        shown(error)
        code, interrupted = 1, isinstance(error, KeyboardInterrupt)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError):  # None, or closed
            pass
        except OSError as error:
            print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
            code = 120
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


if __name__ == "__main__":
    if program := main():
        run(program)
