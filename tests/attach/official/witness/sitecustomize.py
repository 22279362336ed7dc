"""What a program says itself of its steps, whatever the probe says: every Tensor.backward leaves the loss, bit for bit, as a line in
the folder WITNESS, in a file of its rank, and every update a line whether its gradients are finite. With this folder on PYTHONPATH
Python loads it at its start."""

import importlib.util
import os
import sys


def _watch(torch):
    from torch.optim.optimizer import register_optimizer_step_post_hook
    backward = torch.Tensor.backward
    path = os.path.join(os.environ["WITNESS"], "rank-" + os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))

    def tell(line):
        with open(path, "a", encoding="utf-8") as file:
            print(line, file=file)

    def told(self, *arguments, **more):
        tell(float(self.detach()).hex())
        return backward(self, *arguments, **more)

    def after_an_update(optimizer, *_):
        gradients = [weight.grad for group in optimizer.param_groups for weight in group["params"] if weight.grad is not None]
        tell("update " + ("well" if all(bool(torch.isfinite(gradient).all()) for gradient in gradients) else "bad"))

    torch.Tensor.backward = told
    register_optimizer_step_post_hook(after_an_update)


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
