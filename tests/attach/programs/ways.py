"""Ways in which programs come to torch. Like most of them, this one imports transformers first, which looks for torch
without importing it.

usage: ways.py WAY
"""
import ast
import importlib
import importlib.util
import multiprocessing
import sys
import threading
import types

import transformers  # noqa: F401

CELLS = ("import torch\nfrom torch import nn", "import ways_of_this_program\nways_of_this_program.train()")


def train():
    """Four steps; the batch of step 2 has a NaN."""
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(4):
        x = torch.randn(8, 4)
        if step == 2:
            x[1, 3] = float("nan")
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def asked_for_twice():
    for _ in range(2):
        assert importlib.util.find_spec("torch").loader is not None
        assert importlib.util.find_spec("torch.nn.functional") is not None


def by_hand():
    spec = importlib.util.find_spec("torch")
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch"] = module
    spec.loader.exec_module(module)


def lazy_loader():
    spec = importlib.util.find_spec("torch")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch"] = module
    spec.loader.exec_module(module)
    assert "_C" not in vars(type(module)) and module.__version__


def module_getattr():
    lazy = types.ModuleType("lazy")
    lazy.__getattr__ = lambda name: importlib.import_module(name) if name == "torch" else None
    sys.modules["lazy"] = lazy
    from lazy import torch
    assert torch.nn


def reloaded():
    import torch
    try:
        importlib.reload(torch)
    except Exception as error:  # noqa: BLE001 (PyTorch may refuse it, that is not the point)
        print("reload:", type(error).__name__)


def failed_first():
    sys.modules["torch"] = None
    try:
        import torch
    except ImportError:
        del sys.modules["torch"]
    import torch  # noqa: F811
    assert torch.nn


def another_finder():
    """What wrapt and tracing tools do: a finder in front, which asks the others and puts its loader around theirs."""
    class Loader:
        def __init__(self, inner):
            self.inner = inner

        def create_module(self, spec):
            return self.inner.create_module(spec)

        def exec_module(self, module):
            self.inner.exec_module(module)

    class Finder:
        asked = False

        def find_spec(self, name, path=None, target=None):
            if name != "torch" or self.asked:
                return None
            self.asked = True
            spec = importlib.util.find_spec(name)
            self.asked = False
            spec.loader = Loader(spec.loader)
            return spec

    sys.meta_path.insert(0, Finder())


def in_a_thread():
    thread = threading.Thread(target=importlib.import_module, args=("torch",))
    thread.start()
    thread.join()


def cells():
    """A notebook's kernel: cells compiled and run one statement after the other in a namespace of their own."""
    namespace = {"__name__": "__main__"}
    sys.modules["ways_of_this_program"] = sys.modules[__name__]
    for cell in CELLS:
        for statement in ast.parse(cell).body:
            exec(compile(ast.Module([statement], []), "<cell>", "exec"), namespace)


def in_a_child(method):
    process = multiprocessing.get_context(method).Process(target=train)
    process.start()
    process.join()
    sys.exit(process.exitcode)


def main(way="import"):
    if way in multiprocessing.get_all_start_methods():
        in_a_child(way)
    elif way == "cells":
        cells()
    else:
        if way != "import":
            globals()[way]()
        train()


if __name__ == "__main__":
    main(*sys.argv[1:])
