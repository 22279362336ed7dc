"""What a program says itself of its steps, whatever the probe says: every Tensor.backward leaves the loss, bit for bit, as a line in
the folder WITNESS, in a file of its rank, and every update a line whether its gradients are finite (of weights that are spread over
ranks: this rank's part). With this folder on PYTHONPATH Python loads it at its start.

With ACCELERATORS=2 in the environment this machine's processors stand in for as many accelerators, for programs that ask for some and
would run on processors as well. What they run then is what they would run there, on other devices. SEED=0: programs that draw their
weights without a seed draw the same each time."""

import importlib.util
import os
import sys


def _watch(torch):
    from torch.optim.optimizer import register_optimizer_step_post_hook
    backward = torch.Tensor.backward

    def tell(line):
        rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))  # asked late: a worker of Ray is told after it has imported torch
        with open(os.path.join(os.environ["WITNESS"], "rank-" + rank), "a", encoding="utf-8") as file:
            print(line, file=file)

    def own(tensor):
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor

    def told(self, *arguments, **more):
        tell(float(own(self.detach())).hex())
        return backward(self, *arguments, **more)

    def after_an_update(optimizer, *_):
        gradients = [weight.grad for group in optimizer.param_groups for weight in group["params"] if weight.grad is not None]
        tell("update " + ("well" if all(bool(torch.isfinite(own(gradient)).all()) for gradient in gradients) else "bad"))

    torch.Tensor.backward = told
    register_optimizer_step_post_hook(after_an_update)


def _stand_in(torch, count):
    """For programs only: PyTorch itself still knows what exists."""
    def instead(name, answer):
        own = getattr(torch.accelerator, name)
        setattr(torch.accelerator, name, lambda *given, **more: own(*given, **more) if sys._getframe(1).f_globals.get(
            "__name__", "").startswith("torch.") else answer)

    for name, answer in (("is_available", True), ("device_count", count), ("current_accelerator", torch.device("cpu")),
                         ("set_device_index", None), ("device_index", None)):
        instead(name, answer)


def _shard_on_processors(state):
    """accelerate shards nothing on processors; asked for it there, it goes on as if it had not been."""
    begin = state.AcceleratorState.__init__

    def asked(self, mixed_precision=None, cpu=False, *arguments, fsdp_plugin=None, **more):
        begin(self, mixed_precision, cpu, *arguments, fsdp_plugin=fsdp_plugin, **more)
        if fsdp_plugin is not None and self.distributed_type == state.DistributedType.MULTI_CPU:
            self.distributed_type, self.fsdp_plugin = state.DistributedType.FSDP, fsdp_plugin
            if self._mixed_precision != "no":
                fsdp_plugin.set_mixed_precision(self._mixed_precision)

    state.AcceleratorState.__init__ = asked


class _Finder:
    """Finds modules as they are, with loaders that call what is to come after them. It stays until then, as transformers asks where
    torch is long before it imports it."""

    waiting = {}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.waiting or cls not in sys.meta_path:
            return None
        place = sys.meta_path.index(cls)
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(place, cls)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            for what in cls.waiting.pop(name, ()):
                what(module)

        spec.loader.exec_module = exec_module
        return spec


if "WITNESS" in os.environ:
    _Finder.waiting["torch"] = [_watch]
if "ACCELERATORS" in os.environ:
    _Finder.waiting.setdefault("torch", []).append(lambda torch: _stand_in(torch, int(os.environ["ACCELERATORS"])))
    _Finder.waiting["accelerate.state"] = [_shard_on_processors]
if "SEED" in os.environ:
    _Finder.waiting.setdefault("torch", []).append(lambda torch: torch.manual_seed(int(os.environ["SEED"])))
if _Finder.waiting:
    sys.meta_path.insert(0, _Finder)
