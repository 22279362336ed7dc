"""What looking at every step can cost at least on a device: ways to do it in plain PyTorch, without the probe, in turns in one process.

usage: gpu_floor.py [--device cuda|cpu] [--steps N] [--rounds N] [--limit SECONDS] [--json FILE] [MODEL ...]    (attach_worker.py's; default: gpt2 resnet50)

A line for each way: milliseconds a step, its ratio to the plain loop with the same optimizer in the same round (median, lowest, highest), and whether
the host waited for the device in it. Then, of ways that keep a bad update out, whether weights and moments kept their bits when a gradient was NaN.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

KERNELS = r"""
// A row a tensor: address, count of elements, address to keep it at. All threads go over each.
struct Row { float* at; long long count; float* kept; };
#define ALL(body)                                                                            \
  for (int r = 0; r < rows; ++r) {                                                           \
    const Row row = table[r];                                                                \
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < row.count;      \
         i += (long long)gridDim.x * blockDim.x)                                             \
      body;                                                                                  \
  }
extern "C" __global__ void any_bad(const Row* table, int rows, float* word) {
  int bad = 0;
  ALL(bad |= !isfinite(row.at[i]))
  if (bad) *word = 1.0f;
}
extern "C" __global__ void keep_if(const Row* table, int rows, const float* word) {
  if (*word == 0.0f) return;
  ALL(row.kept[i] = row.at[i])
}
extern "C" __global__ void put_back_if(const Row* table, int rows, const float* word) {
  if (*word == 0.0f) return;
  ALL(row.at[i] = row.kept[i])
}
"""
BLOCKS = 2048


class Ring:
    """Numbers on their way to pinned memory, looked at when they have come."""

    def __init__(self, count, device):
        self.pinned = [torch.zeros(count + 1, pin_memory=device == "cuda") for _ in range(4)]
        self.events = [torch.cuda.Event() if device == "cuda" else None for _ in range(4)]
        self.put, self.seen, self.last = 0, 0, None

    def send(self, norms, loss):
        at = self.put % 4
        self.pinned[at][:norms.numel()].copy_(norms, non_blocking=True)
        self.pinned[at][-1:].copy_(loss, non_blocking=True)
        if self.events[at]:
            self.events[at].record()
        self.put += 1

    def poll(self):
        while self.seen < self.put - 1 and (not self.events[self.seen % 4] or self.events[self.seen % 4].query()):
            self.last = float(self.pinned[self.seen % 4][-1])
            self.seen += 1


class Loop:
    """A model's training, with what may stand before and after its update."""

    def __init__(self, device, optimizer, loss_of):
        self.device, self.loss_of = device, loss_of
        self.parameters = optimizer.param_groups[0]["params"]
        kind, settings = type(optimizer), {name: optimizer.defaults[name] for name in ("lr", "momentum") if name in optimizer.defaults}
        self.optimizers = {"foreach": kind(self.parameters, foreach=True, **settings), "fused": kind(self.parameters, fused=True, **settings)}
        self.optimizer, self.word, self.norms = self.optimizers["foreach"], torch.zeros(1, device=device), None
        self.ring = Ring(len(self.parameters), device)
        self.found_inf = False
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def _before(self, optimizer, args, kwargs):
        if self.found_inf:
            optimizer.found_inf = self.word

    def _after(self, optimizer, args, kwargs):
        if self.found_inf:
            del optimizer.found_inf

    def gradients(self):
        return [p.grad for p in self.parameters]

    def state(self):
        """What an update of the optimizer at hand overwrites."""
        return [*self.parameters, *(t for s in self.optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor) and t.numel() > 1)]

    def step(self, way, bad=False):
        self.optimizer.zero_grad()
        loss = self.loss_of()
        loss.backward()
        if bad:
            self.parameters[-1].grad.view(-1)[0] = float("nan")
        way.before(self, loss.detach().view(1))
        self.optimizer.step()
        way.after(self)

    def norm_words(self):
        """Norms of all gradients, and from them the word: 1 where one is not finite."""
        self.norms = torch.stack(torch._foreach_norm(self.gradients()))
        self.word = (~torch.isfinite(self.norms.sum())).float()   # without a dimension, as the count of steps


class Way:
    """The plain loop; others differ in what they do around the update."""
    optimizer, needs_gpu, keeps_out, note = "foreach", False, False, "the plain loop"

    def begin(self, loop):
        pass

    def before(self, loop, loss):
        pass

    def after(self, loop):
        pass

    def end(self, loop):
        pass


class Wait(Way):
    note = "norms of all gradients, read before the update (as the probe does)"

    def before(self, loop, loss):
        torch.stack(torch._foreach_norm(loop.gradients())).tolist()


class Later(Way):
    note = "norms, the word and the loss are sent, and looked at a step later"

    def before(self, loop, loss):
        loop.ring.poll()
        loop.norm_words()
        loop.ring.send(loop.norms, loss)


class Held(Later):
    keeps_out = True
    note = "the same, and the fused optimizer gets the word as found_inf"

    def begin(self, loop):
        loop.found_inf = True

    def end(self, loop):
        loop.found_inf = False
        loop.optimizer.__dict__.pop("found_inf", None)


class Clip(Way):
    note = "the program clips"

    def before(self, loop, loss):
        self.total = torch.nn.utils.clip_grad_norm_(loop.parameters, 1.0)


class ClipLater(Clip):
    note = "the program clips; its total and the loss are sent, and looked at a step later"

    def before(self, loop, loss):
        loop.ring.poll()
        super().before(loop, loss)
        loop.ring.send(self.total.view(1), loss)


class KeepAll(Way):
    note = "all that the update overwrites is copied, every step"

    def begin(self, loop):
        self.kept = [torch.empty_like(t) for t in loop.state()]

    def before(self, loop, loss):
        torch._foreach_copy_(self.kept, loop.state())

    def end(self, loop):
        del self.kept


class Observed(Way):
    note = "PyTorch's observer that does nothing"

    def begin(self, loop):
        torch.autograd._set_empty_test_observer(False, 1.0)

    def end(self, loop):
        torch._C._autograd._clear_callbacks()


class OwnWord(Way):
    needs_gpu = True
    note = "one kernel of our own looks at all gradients; word and loss are sent, and looked at a step later"

    def begin(self, loop):
        self.kernels = {name: torch.cuda._compile_kernel(KERNELS, name) for name in ("any_bad", "keep_if", "put_back_if")}
        self.table = torch.zeros(2, 3 * len(loop.parameters), dtype=torch.int64, pin_memory=True)
        self.on_device = torch.zeros(3 * len(loop.parameters), dtype=torch.int64, device=loop.device)
        self.turn, loop.word = 0, torch.zeros(1, device=loop.device)

    def launch(self, name, table, word):
        self.kernels[name](grid=(BLOCKS, 1, 1), block=(256, 1, 1), args=[table, table.numel() // 3, word])

    def before(self, loop, loss):
        loop.ring.poll()
        self.turn ^= 1
        self.table[self.turn] = torch.tensor([x for g in loop.gradients() for x in (g.data_ptr(), g.numel(), 0)])   # they may lie elsewhere each step
        self.on_device.copy_(self.table[self.turn], non_blocking=True)
        loop.word.zero_()
        self.launch("any_bad", self.on_device, loop.word)
        loop.ring.send(loop.word, loss)

    def end(self, loop):
        del self.kernels, self.table, self.on_device


class KeptIfBad(OwnWord):
    keeps_out = True
    note = "the same, and one kernel before the update keeps what it overwrites if the word is set, one after it puts it back"

    def begin(self, loop):
        super().begin(loop)
        self.kept = [torch.empty_like(t) for t in loop.state()]
        self.places = torch.tensor([x for t, k in zip(loop.state(), self.kept) for x in (t.data_ptr(), t.numel(), k.data_ptr())], device=loop.device)

    def before(self, loop, loss):
        super().before(loop, loss)
        self.launch("keep_if", self.places, loop.word)

    def after(self, loop):
        self.launch("put_back_if", self.places, loop.word)

    def end(self, loop):
        super().end(loop)
        del self.kept, self.places


def fused(way):
    return type(way.__name__, (way,), {"optimizer": "fused"})


# name -> (the way, what it is compared with)
WAYS = {"plain": (Way, "plain"), "wait": (Wait, "plain"), "later": (Later, "plain"), "observed": (Observed, "plain"), "clip": (Clip, "clip"),
        "clip_later": (ClipLater, "clip"), "keep_all": (KeepAll, "plain"), "own_word": (OwnWord, "plain"), "kept_if_bad": (KeptIfBad, "plain"),
        "fused": (fused(Way), "fused"), "fused_wait": (fused(Wait), "fused"), "fused_held": (fused(Held), "fused")}


class Turns:
    def __init__(self, device, model):
        import attach_worker

        self.device, self.loop = device, Loop(device, *attach_worker.MODELS[model]())
        self.ways = {name: way() for name, (way, _) in WAYS.items() if device == "cuda" or not way.needs_gpu}

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def block(self, name, count, bad=False):
        """Seconds a step of a block of a way; two steps go before it."""
        way, loop = self.ways[name], self.loop
        loop.optimizer = loop.optimizers[way.optimizer]
        if not loop.optimizer.state:
            loop.step(self.ways["plain"])
        way.begin(loop)
        try:
            for _ in range(2):
                loop.step(way)
            self.synchronize()
            before, began = [t.clone() for t in loop.state()] if bad else [], time.perf_counter()
            for _ in range(count):
                loop.step(way, bad)
            self.synchronize()
            took = (time.perf_counter() - began) / count
            same = all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(before, loop.state())) if bad else None
            for kept, t in zip(before, loop.state()):
                t.data.copy_(kept)
        finally:
            way.end(loop)
        return same if bad else took

    def waits(self, name):
        """Whether the host waits for the device in a step of a way."""
        if self.device != "cuda":
            return "-"
        way, loop = self.ways[name], self.loop
        loop.optimizer = loop.optimizers[way.optimizer]
        way.begin(loop)
        try:
            loop.step(way)
            torch.cuda.set_sync_debug_mode("error")
            loop.step(way)
            return "no"
        except RuntimeError as error:
            return "yes" if "synchroniz" in str(error) else f"? {error}"
        finally:
            torch.cuda.set_sync_debug_mode("default")
            way.end(loop)

    def drop(self, name, error):
        print(f"  {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        del self.ways[name]


def measure(options, model):
    turns = Turns(options.device, model)
    waits, times, began = {}, {}, time.monotonic()
    for name in list(turns.ways):
        try:
            turns.block(name, 1)
            waits[name] = turns.waits(name)
        except Exception as error:  # noqa: BLE001 (it is a line of the table)
            turns.drop(name, error)
    for turn in range(options.rounds):
        if turn and time.monotonic() - began > options.limit * turn / (turn + 1):
            break
        names = list(turns.ways)
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            try:
                times.setdefault(name, []).append(turns.block(name, options.steps))
            except Exception as error:  # noqa: BLE001
                turns.drop(name, error)
    rows = {}
    for name, seconds in ((name, times[name]) for name in turns.ways):
        base = times[WAYS[name][1]]
        ratios = [a / b for a, b in zip(seconds, base)]
        rows[name] = {"ms": 1e3 * statistics.median(seconds), "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
                      "waits": waits[name], "note": turns.ways[name].note}
        r = rows[name]
        print(f"{model:14} {name:12} {r['ms']:9.3f} {r['ratio']:.4f} ({r['low']:.3f} to {r['high']:.3f}) {r['waits']:>5}  {r['note']}", flush=True)
    for name in [name for name, way in turns.ways.items() if way.keeps_out]:
        try:
            rows[name]["keeps_out"] = turns.block(name, 1, bad=True)
            print(f"{model:14} {name:12} with a NaN gradient weights and moments {'keep their bits' if rows[name]['keeps_out'] else 'CHANGE'}", flush=True)
        except Exception as error:  # noqa: BLE001
            print(f"  {name}: {error}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--limit", type=float, default=3600, help="seconds of turns for a model")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    os.environ["NANQUEST_BENCH_DEVICE"] = options.device
    print(f"{'model':14} {'way':12} {'ms':>9} {'of the plain loop':24} {'waits':>6}", flush=True)
    table = {}
    for model in options.models or ("gpt2", "resnet50"):
        table[model] = measure(options, model)
        if options.json:
            Path(options.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
