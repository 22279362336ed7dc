"""The gate that answers after the update: whatever the loop looks like, the step is the right one, no bit changes, and nobody waits for it."""

import os
import sys
import unittest
from pathlib import Path

import nqdev
import torch
from observed import BAD, COUNTED_FROM, STEPS, Observed, mlp, run_under_probe


def clipped(model, optimizers, batches):
    model(batches[0]).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizers[0].step()


def accumulated(model, optimizers, batches):
    for x in batches:
        (model(x).square().mean() / len(batches)).backward()
    optimizers[0].step()


def two(model, optimizers, batches):
    """Two optimizers, each with a part of the weights."""
    model(batches[0]).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()


def alternating(model, optimizers, batches):
    """… each after a pass of its own: still one step."""
    for optimizer, x in zip(optimizers, batches):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def by_hand(model, optimizers, batches):
    model(batches[0]).square().mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(p.grad, alpha=1e-2)
            p.grad = None


LOOPS = {loop.__name__: loop for loop in (clipped, accumulated, two, alternating, by_hand)}


class NormOfEach:
    """A clip of the program's own in the place of PyTorch's: it returns several norms, whose sum is infinite. `bad`: one of them too."""

    bad = False

    def __call__(self, parameters, *_):
        norms = torch.tensor([3e38, 2e38], device=next(iter(parameters)).device)
        return norms * 2 if self.bad else norms


if any(argument.startswith("norms") for argument in sys.argv):
    LOOPS |= {"norms": clipped, "norms_cpu": clipped}
    torch.nn.utils.clip_grad_norm_ = norm_of_each = NormOfEach()


def train(loop, fault="", seed=1):
    """As observed.train (`loop` ends with "_cpu": on the CPU); fault: "batch", or "last" in the last step, or "setting": one that spoils every weight in step BAD."""
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    device = "cpu" if loop.endswith("_cpu") else "nqdev"
    model = mlp().to(device)
    weights = list(model.parameters())
    parts = (weights[:2], weights[2:]) if loop in ("two", "alternating") else (weights,)
    optimizers = [torch.optim.AdamW(part, lr=1e-2) for part in parts]
    for step in range(STEPS):
        if step == COUNTED_FROM:
            nqdev.reset_counts()
        batches = torch.randn(2, 4, 8)
        if fault == "setting" and step == BAD:
            optimizers[0].param_groups[0]["weight_decay"] = float("nan")
        elif fault == "norm":
            norm_of_each.bad = step == BAD
        elif fault and step == (STEPS - 1 if fault == "last" else BAD):
            batches[0, 1, 3] = float("nan")
        for optimizer in optimizers:
            optimizer.zero_grad()
        LOOPS[loop](model, optimizers, batches.to(device))
    counts = nqdev.counts()
    return [p.detach().cpu() for p in model.parameters()], counts


class BackEndTest(unittest.TestCase):
    def test_which_kernels_a_device_has(self):
        """What `nanquest doctor` prints: the CPU and the tests' device."""
        torch.ops.load_library(os.environ["NANQUEST_ATTACH_LIBRARY"])
        self.assertEqual([torch.ops.nanquest.own_kernels(kind) for kind in ("cpu", "nqdev", "nqdev:1")], [3, 2, 2])


class GateTest(Observed):
    script = Path(__file__).resolve()

    def test_a_bad_batch_is_found_in_its_step(self):
        for loop, level, settings in [*((loop, "trace", {}) for loop in LOOPS), ("clipped", "trace", {"keep_steps": 0}),
                                      ("accumulated", "trace", {"keep_steps": 0}), ("two", "trace", {"keep_steps": 0}), ("clipped", "guard", {})]:
            with self.subTest(loop=loop, level=level, settings=settings):
                run, [(weights, _)] = self.observed(level, loop, "batch", **settings)
                self.assert_same_bits(weights, train(loop, "batch")[0])
                self.assertIn(f"nanquest: step {BAD}: the loss is NaN", self.said)
                if level == "trace":
                    self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")

    def test_no_bit_changes_and_nobody_waits(self):
        for loop in LOOPS:
            for level in ("guard", "trace"):
                with self.subTest(loop=loop, level=level):
                    alone = train(loop, seed=0)
                    run, [(weights, counts)] = self.observed(level, loop, seeds=0)
                    self.assert_same_bits(weights, alone[0])
                    self.assertEqual(counts["synchronisations"], alone[1]["synchronisations"])
                    self.assertEqual(list(run.glob("incidents/*")), [])

    def test_the_first_update_with_another_setting_is_kept_whatever_that_costs(self):
        run, [(weights, _)] = self.observed("trace", "clipped", "setting", keep_percent=0)
        self.assert_same_bits(weights, train("clipped", "setting")[0])
        self.verdict(run)

    def test_one_of_several_norms_is_bad_and_their_sum_does_not_matter(self):
        for loop in ("norms", "norms_cpu"):
            for fault in ("", "norm"):
                with self.subTest(loop=loop, fault=fault):
                    run, _ = self.observed("guard", loop, fault)
                    told = [f"nanquest: step {BAD}: the norm that the gradients were clipped by was not finite"] if fault else []
                    said = [line for line in self.said.splitlines() if ": step " in line]
                    self.assertEqual(len(said), len(told), said)
                    for line, words in zip(said, told):
                        self.assertIn(words, line)

    def test_the_last_step_is_told_at_the_end(self):
        run, _ = self.observed("trace", "clipped", "last")
        self.assertIn(f"nanquest: step {STEPS - 1}: the loss is NaN", self.said)
        self.assertEqual(self.verdict(run, STEPS - 1)["cause"], "BAD_DATA")


if __name__ == "__main__":
    run_under_probe(train) if "--train" in sys.argv else unittest.main()
