"""What a program says itself of its steps, whatever the probe says: every Tensor.backward leaves the loss, bit for bit, as a line in
the folder WITNESS, in a file of its rank. With this folder on PYTHONPATH Python loads it at its start."""

import importlib.util
import os
import sys


def _watch(torch):
    backward = torch.Tensor.backward
    path = os.path.join(os.environ["WITNESS"], "rank-" + os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))

    def told(self, *arguments, **more):
        with open(path, "a", encoding="utf-8") as file:
            print(float(self.detach()).hex(), file=file)
        return backward(self, *arguments, **more)

    torch.Tensor.backward = told


class _Finder:
    """Finds torch as it is, with a loader that calls _watch once it has run. It stays until then, as transformers asks where torch
    is long before it imports it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch" or _Finder not in sys.meta_path:
            return None
        place = sys.meta_path.index(_Finder)
        sys.meta_path.remove(_Finder)
        spec = importlib.util.find_spec("torch")
        sys.meta_path.insert(place, _Finder)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            sys.meta_path.remove(_Finder)
            _watch(module)

        spec.loader.exec_module = exec_module
        return spec


if "WITNESS" in os.environ:
    sys.meta_path.insert(0, _Finder)
