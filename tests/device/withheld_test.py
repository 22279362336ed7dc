"""Policies that keep a bad update out without a wait: torch's fused optimizers leave it out on the device; what others overwrite is put back there."""

import sys
import unittest
from pathlib import Path

import nqdev
import torch
from observed import BAD, COUNTED_FROM, SEEDS, STEPS, Observed, TwoDevices, mlp, run_under_probe
from torch import nn

OPTIMIZERS = {
    "adamw": lambda p, **how: torch.optim.AdamW(p, lr=1e-2, amsgrad=True, **how),
    "adam": lambda p, **how: torch.optim.Adam(p, lr=1e-2, **how),
    "sgd": lambda p, **how: torch.optim.SGD(p, lr=1e-2, momentum=0.9, **how),
    "adagrad": lambda p, **how: torch.optim.Adagrad(p, lr=1e-2, **how),
    "nadam": lambda p, fused, **how: torch.optim.NAdam(p, lr=1e-2, **how),
    "rmsprop": lambda p, fused, **how: torch.optim.RMSprop(p, lr=1e-2, momentum=0.9, **how),
    "replacing": lambda p, fused, **how: Replacing(p, lr=1e-2, **how),
}
HOW = {"unfused": {"fused": None}, "single": {"fused": None, "foreach": False}}  # in the name of a training
NORMED = "norms"  # in the name of a training: with batch norms
LOW = {"narrow": torch.bfloat16, "autocast": torch.float16}  # … weights in 16 bits, or autocast and a scaler


class Replacing(torch.optim.SGD):
    """Puts another tensor in the place of a moment during its update, as no optimizer of PyTorch does."""

    def _init_group(self, *arguments):
        for state in self.state.values():
            state["momentum_buffer"] = state["momentum_buffer"].clone()
        return super()._init_group(*arguments)

    def __init__(self, p, lr, **how):
        super().__init__(p, lr=lr, momentum=0.9, **how)


def model_of(kind):
    if "places" in kind:
        return TwoDevices()
    if "narrow" in kind:  # the device has no layer norm whose backward is in 16 bits
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)) if NORMED in kind else mlp()


def widen(model, optimizer):
    """What a program would do that falls back to fp32 and half the rate."""
    for p in model.parameters():
        p.data = p.data.float()
    for state in optimizer.state.values():
        state.update({key: value.float() for key, value in state.items()})
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def train(kind, fault="", seed=1, left_out=(), wide_from=STEPS):
    """As observed.train; `kind`: an optimizer, and words for how. Steps in `left_out` make no update, and those from `wide_from` on
    are in fp32, as a program would do it. The first step that was in fp32 is counted as "wide"."""
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    model = model_of(kind).to("nqdev")
    how = next((how for word, how in HOW.items() if word in kind), {"fused": True})
    optimizer = OPTIMIZERS[kind.split()[0]](model.parameters(), **how)
    scaler = torch.amp.GradScaler("nqdev", init_scale=256.0, enabled="scaled" in kind or "autocast" in kind)
    low = next((low for word, low in LOW.items() if word in kind), None)
    model = model.to(low) if "narrow" in kind else model
    if "table" in kind:  # of positions: constant, and in no checkpoint
        model.register_buffer("table", torch.ones(4, device="nqdev"), persistent=False)
    if "counting" in kind:  # on the host
        model.register_buffer("seen", torch.zeros(1))
        model.register_forward_hook(lambda model, *_: model.seen.add_(1) and None)
    ended, wide = 0, []
    for step in range(STEPS):
        if step == COUNTED_FROM:
            nqdev.reset_counts()
        x = torch.randn(4, 8)
        if step == BAD and fault == "batch" or step == STEPS - 1 and fault == "last":
            x[1, 3] = float("nan")
        try:
            if "waiting" in kind:  # once a step, with the update of the last one
                torch.get_device_module("nqdev").synchronize()
            optimizer.zero_grad()
            if step == wide_from:
                widen(model, optimizer)
                scaler = torch.amp.GradScaler("nqdev", enabled=False)
            buffers = [buffer.clone() for buffer in model.buffers()]
            x = x.to("nqdev", low if "narrow" in kind else None)
            with torch.autocast("nqdev", torch.float16, enabled="autocast" in kind and step < wide_from):
                made = model(x.float() if step >= wide_from else x)
            wide += [step] if made.dtype == torch.float32 else []
            scaler.scale(made.square().mean()).backward()
            if "clipped" in kind:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if step not in left_out:
                scaler.step(optimizer)
                scaler.update()
            else:
                for buffer, before in zip(model.buffers(), buffers):
                    buffer.copy_(before)
            assert not hasattr(optimizer, "found_inf")
        except SystemExit:
            ended = step
            break
    counts = dict(nqdev.counts(), ended=ended, wide=wide[:1])
    state = [value.detach().cpu() for p in model.parameters() for value in (p, *(v for v in optimizer.state[p].values() if v is not None))]
    return state + [buffer.float().cpu() for buffer in model.buffers()], counts


class WithheldTest(Observed):
    script = Path(__file__).resolve()

    def test_no_bit_changes_and_nobody_waits(self):
        for kind in ("adamw", "adam clipped", "sgd scaled", "adagrad table", "adamw scaled clipped", "adamw unfused", "sgd single clipped norms", "nadam unfused", "adamw places", "sgd unfused places"):
            for level, policy in (("guard", "skip"), ("trace", "fallback_fp32" if "scaled" in kind else "stop")):
                with self.subTest(kind=kind, level=level, policy=policy):
                    alone = train(kind, seed=0)
                    run, [(state, counts)] = self.observed(level, kind, seeds=0, on_incident=policy)
                    self.assert_same_bits(state, alone[0])
                    self.assertEqual(counts["synchronisations"], alone[1]["synchronisations"], (counts, alone[1]))
                    self.assertEqual(list(run.glob("incidents/*")), [])
                    self.assertNotIn("waits for its gate", self.said)

    def test_the_gate_adds_no_wait_to_a_program_that_waits_once_a_step(self):
        """The device lags behind here (seed 1), so that a gate that has to be read before the update is waited for."""
        alone = train("adamw waiting")[1]["synchronisations"]
        for level, policy, gate, more in (("guard", "continue", "later", 0), ("guard", "continue", "now", STEPS - COUNTED_FROM),
                                          ("guard", "fallback_fp32", "later", 0), ("trace", "skip", "later", 0)):
            with self.subTest(level=level, policy=policy, gate=gate):
                _, [(_, counts)] = self.observed(level, "adamw waiting", on_incident=policy, gate=gate)
                self.assertEqual(counts["synchronisations"] - alone, more)

    def test_a_bad_update_is_left_out_on_the_device(self):
        for kind in ("adamw", "adam clipped", "sgd norms", "adagrad table", "adamw scaled", "adamw places"):
            with self.subTest(kind=kind):
                run, [(state, _)] = self.observed("trace", kind, "batch", on_incident="skip")
                # With a scaler the program leaves it out itself, and lowers its scale.
                alone = train(kind, "batch") if "scaled" in kind else train(kind, "batch", left_out=(BAD,))
                self.assert_same_bits(state, alone[0])
                self.assertTrue(all(values.isfinite().all() for values in state))
                self.assertIn(f"nanquest: step {BAD}: the loss is NaN", self.said)
                self.assertIn(f"nanquest: step {BAD}: batch skipped: policy skip", self.said)
                self.assertIn("left out on the device", self.said)
                self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")

    def test_what_other_optimizers_overwrite_is_put_back_on_the_device(self):
        for kind, level in (("adamw unfused", "trace"), ("adam single clipped", "guard"), ("sgd unfused norms", "trace"), ("adagrad single", "guard"),
                            ("nadam unfused table", "trace"), ("rmsprop unfused", "guard"), ("adamw unfused places clipped", "trace")):
            with self.subTest(kind=kind, level=level):
                run, [(state, _)] = self.observed(level, kind, "batch", on_incident="skip")
                self.assert_same_bits(state, train(kind, "batch", left_out=(BAD,))[0])
                self.assertNotIn("waits for its gate", self.said)
                self.assertIn(f"nanquest: step {BAD}: the loss is NaN", self.said)
                self.assertIn(f"nanquest: step {BAD}: batch skipped: policy skip", self.said)
                if level == "trace":
                    self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")

    def test_fp32_begins_a_step_later(self):
        """Or two, if the device has answered only before the next update. What a bad step wrote is in no weight."""
        for kind, level in (("adamw narrow", "trace"), ("adam narrow", "guard"), ("adamw autocast", "trace"), ("sgd autocast clipped", "guard"), ("adam narrow unfused", "trace")):
            with self.subTest(kind=kind, level=level):
                run, [(state, counts)] = self.observed(level, kind, "batch", on_incident="fallback_fp32")
                self.assertIn(counts["wide"], ([BAD + 1], [BAD + 2]))
                self.assert_same_bits(state, train(kind, "batch", left_out=(BAD,), wide_from=counts["wide"][0])[0])
                self.assertTrue(all(values.isfinite().all() for values in state))
                self.assertIn(f"nanquest: step {BAD}: the loss is NaN", self.said)
                self.assertIn(f"nanquest: step {BAD}: its update is left out; from here on: fp32, learning rate times 0.5", self.said)
                self.assertNotIn("waits for its gate", self.said)
                self.assertIn(f"fp32 after step {counts['wide'][0] - 1}", (run / "manifest.json").read_text())
                if level == "trace":
                    self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")

    def test_in_whatever_order_streams_run(self):
        for kind in ("adamw", "adamw unfused"):
            alone = train(kind, "batch", left_out=(BAD,))[0]
            for state, _ in self.observed("guard", kind, "batch", seeds=SEEDS, on_incident="skip")[1]:
                self.assert_same_bits(state, alone)

    def test_stop_ends_a_step_later(self):
        """At the latest: as soon as the device has answered."""
        states = []
        for gate, last in (("later", (BAD, BAD + 1)), ("now", (BAD,))):
            with self.subTest(gate=gate):
                run, [(state, counts)] = self.observed("trace", "adamw", "batch", on_incident="stop", gate=gate)
                self.assertIn(counts["ended"], last)
                states.append(state)
                self.assertIn(f"nanquest: step {BAD}: the loss is NaN", self.said)
                self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")
        self.assert_same_bits(*states)

    def test_the_last_step_is_told_at_the_end(self):
        run, [(state, _)] = self.observed("trace", "adamw", "last", on_incident="skip")
        self.assert_same_bits(state, train("adamw", "last", left_out=(STEPS - 1,))[0])
        self.assertIn(f"nanquest: step {STEPS - 1}: the loss is NaN", self.said)
        self.assertIn("1 batch", (run / "manifest.json").read_text())

    def test_what_a_device_cannot_leave_out_waits_and_says_why(self):
        for kind, why in (("replacing unfused", "Replacing replaced its moments during an update"),
                          ("adamw counting", "its model has buffers that the device can't put back")):
            with self.subTest(kind=kind):
                run, [(state, _)] = self.observed("trace", kind, "batch", on_incident="skip")
                self.assert_same_bits(state, train(kind, "batch", left_out=(BAD,))[0])
                self.assertIn(f"nanquest: each step waits for its gate: {why}", self.said)
                self.assertIn(f"nanquest: step {BAD}: batch skipped: policy skip", self.said)
                self.assertEqual(self.verdict(run)["cause"], "BAD_DATA")


if __name__ == "__main__":
    run_under_probe(train) if "--train" in sys.argv else unittest.main()
