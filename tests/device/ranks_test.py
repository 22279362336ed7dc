"""Two processes that train together on the test device, under DistributedDataParallel: both leave a bad update out there, and nobody waits."""

import os
import sys
import unittest
from pathlib import Path

import nqdev
import torch
from observed import BAD, COUNTED_FROM, STEPS, Observed, mlp, run_under_probe
from torch import distributed, nn
from torch._C._distributed_c10d import _create_work_from_future

RANKS = 2
OPTIMIZERS = {
    "adamw": lambda p, **how: torch.optim.AdamW(p, lr=1e-2, **how),
    "sgd": lambda p, **how: torch.optim.SGD(p, lr=1e-2, momentum=0.9, **how),
}


class OverHost(distributed.ProcessGroup):
    """What DistributedDataParallel needs of a process group, on the host: the test device has no network."""

    def __init__(self, store, rank, size, patience):
        super().__init__(rank, size)
        self._host = distributed.ProcessGroupGloo(distributed.PrefixStore("host", store), rank, size, patience)

    def getBackendName(self):
        return "over_host"

    def _each(self, tensors, do):
        for tensor in tensors:
            value = tensor.cpu()
            do(value).wait()
            tensor.copy_(value)
        return self._done(tensors)

    @staticmethod
    def _done(result):
        future = torch.futures.Future()
        future.set_result(result)
        return _create_work_from_future(future)

    def allreduce(self, tensors, options=None):
        how = distributed.AllreduceOptions()
        how.reduceOp = options.reduceOp
        return self._each(tensors, lambda value: self._host.allreduce([value], how))

    def broadcast(self, tensors, options):
        return self._each(tensors, lambda value: self._host.broadcast([value], options))

    def allgather(self, outputs, inputs, options=None):
        for results, tensor in zip(outputs, inputs):
            values = [result.cpu() for result in results]
            self._host.allgather([values], [tensor.cpu()]).wait()
            for result, value in zip(results, values):
                result.copy_(value)
        return self._done(outputs)


def train(kind, fault="", seed=1):
    """As observed.train. `fault`: "batch" or "loss" of the last rank is NaN in step BAD; the loss's gradients are not. "without" in `kind`:
    that step makes no update, and leaves the buffers as they were."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = distributed.FileStore(str(Path(sys.argv[-2]).parent / "store"), size)
    distributed.Backend.register_backend("over_host", OverHost, devices=["cpu", "nqdev"])
    distributed.init_process_group("over_host", store=store, rank=rank, world_size=size)
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)) if "norms" in kind else mlp()
    model = nn.parallel.DistributedDataParallel(model.to("nqdev"))
    optimizer = OPTIMIZERS[kind.split()[0]](model.parameters(), fused=None if "unfused" in kind else True)
    torch.manual_seed(rank)
    for step in range(STEPS):
        if step == COUNTED_FROM:
            nqdev.reset_counts()
        x = torch.randn(4, 8)
        bad = step == BAD and rank == size - 1
        if bad and fault == "batch":
            x[1, 3] = float("nan")
        optimizer.zero_grad()
        before = [buffer.clone() for buffer in model.buffers()]
        loss = model(x.to("nqdev")).square().mean()
        if bad and fault == "loss":
            loss = loss + torch.full((), float("nan"), device="nqdev")
        loss.backward()
        if "clipped" in kind:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if "without" in kind and step == BAD:
            for buffer, value in zip(model.buffers(), before):
                buffer.copy_(value)
        else:
            optimizer.step()
    counts = nqdev.counts()
    return [value.detach().float().cpu() for value in (*model.parameters(), *model.buffers())], counts


class RanksTest(Observed):
    script = Path(__file__).resolve()

    def ranks(self, level, kind, fault="", **settings):
        """(run directory, [weights of each rank], [how often each waited])"""
        run, each = self.observed(level, kind, fault, ranks=RANKS, **settings)
        return run, [state for [(state, _)] in each], [counts["synchronisations"] for [(_, counts)] in each]

    def test_nobody_waits(self):
        for kind, level in (("adamw", "guard"), ("sgd unfused clipped norms", "trace")):
            with self.subTest(kind=kind, level=level):
                _, alone, waits = self.ranks("off", kind)
                run, states, waited = self.ranks(level, kind, on_incident="skip")
                for state, right in zip(states, alone):
                    self.assert_same_bits(state, right)
                self.assertEqual(waited, waits)
                self.assertNotIn("waits for its gate", self.said)
                self.assertEqual(list(run.glob("incidents/*")), [])

    def test_all_leave_out_what_one_spoiled(self):
        for kind, level in (("adamw unfused", "guard"), ("sgd norms", "trace")):
            with self.subTest(kind=kind, level=level):
                _, right, _ = self.ranks("off", f"{kind} without", "batch")
                run, states, _ = self.ranks(level, kind, "batch", on_incident="skip")
                for state, values in zip(states, right):
                    self.assert_same_bits(state, values)
                self.assertNotIn("waits for its gate", self.said)
                self.assertEqual(self.said.count(f"step {BAD}: batch skipped: policy skip"), RANKS)
                if level == "trace":
                    self.assertEqual(len(list(run.glob("incidents/*.h5"))), RANKS)

    def test_a_loss_that_only_one_rank_has_decides_nothing(self):
        _, right, _ = self.ranks("off", "adamw", "loss")
        _, states, _ = self.ranks("trace", "adamw", "loss", on_incident="skip")
        for state, values in zip(states, right):
            self.assert_same_bits(state, values)
        self.assertEqual(self.said.count("only the gradients decide whether an update is skipped"), 1)
        self.assertNotIn("batch skipped", self.said)

    def test_what_must_happen_in_the_same_step_waits(self):
        self.ranks("guard", "adamw", on_incident="stop")
        self.assertIn("each step waits for its gate: with --on-incident stop several processes must do so in the same step", self.said)


if __name__ == "__main__":
    run_under_probe(train) if "--train" in sys.argv else unittest.main()
