"""Captured graphs on the test device under the probe: the capture is not spoiled, no bit changes, and a bad replay is found."""

import json
import sys
import unittest
from pathlib import Path

import nqdev
import torch
from observed import BAD, SEEDS, STEPS, Observed, mlp, run_under_probe

WARM = 2  # steps that run as they are, before the capture


def train(kind, fault="", seed=1):
    """(weights on the CPU, none) of a training whose passes ("passes") or whole steps ("whole") are a graph; "eager": neither."""
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    model = mlp().to("nqdev")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    static = torch.zeros(4, 8, device="nqdev")
    graph = None

    def step():
        model(static).square().mean().backward()
        if kind != "passes" or graph is None:
            optimizer.step()

    for number in range(WARM + STEPS):
        x = torch.randn(4, 8)
        if number == WARM + BAD and fault == "batch":
            x[1, 3] = float("nan")
        static.copy_(x)
        if number < WARM or kind == "eager":
            optimizer.zero_grad(set_to_none=True)
            step()
            continue
        if graph is None:
            optimizer.zero_grad(set_to_none=True)
            graph = torch.accelerator.Graph()
            with torch.Stream("nqdev"):
                graph.capture_begin()
                step()
                graph.capture_end()
        graph.replay()
        if kind == "passes":
            optimizer.step()
    return [p.detach().cpu() for p in model.parameters()], None


@unittest.skipUnless(hasattr(torch.accelerator, "Graph"), "this PyTorch has no graphs but CUDA's")
class GraphsTest(Observed):
    script = Path(__file__).resolve()

    def test_the_device_replays_what_it_captured(self):
        for kind in ("passes", "whole"):
            self.assert_same_bits(train(kind)[0], train("eager")[0])

    def test_waiting_spoils_a_capture(self):
        graph, x = torch.accelerator.Graph(), torch.ones(3, device="nqdev")
        graph.capture_begin()
        with self.assertRaisesRegex(RuntimeError, "not permitted"):
            x.sum().item()
        with self.assertRaisesRegex(RuntimeError, "capture was lost"):
            graph.capture_end()

    def test_the_probe_spoils_no_capture_and_no_bit(self):
        for kind in ("passes", "whole"):
            alone = train(kind)[0]
            for level in ("guard", "trace", "watch"):
                run, all_weights = self.observed(level, kind, seeds=SEEDS)
                for weights, _ in all_weights:
                    with self.subTest(kind=kind, level=level):
                        self.assert_same_bits(weights, alone)
                self.assertEqual(list(run.glob("incidents/*")), [])
                self.assertEqual(self.manifest(run)["incidents"], [])
                self.assertEqual(self.said.count("captures a graph of the device's work"), 1, self.said)

    def test_a_bad_replay_is_found_in_its_step(self):
        for kind in ("passes", "whole"):
            for level in ("guard", "trace"):
                with self.subTest(kind=kind, level=level):
                    run, [(weights, _)] = self.observed(level, kind, "batch")
                    self.assertTrue(any(w.isnan().any() for w in weights))
                    first = self.manifest(run)["incidents"][0]
                    self.assertEqual(first["step"], WARM + BAD, first)
                    self.assertIn("NaN or Inf", self.said)
                    self.assertEqual(list(run.glob("incidents/*")), [])
                    if level == "trace":
                        self.assertIn("a captured graph ran in this step", self.said)

    def manifest(self, run):
        return json.loads((run / "manifest.json").read_text())


if __name__ == "__main__":
    run_under_probe(train) if "--train" in sys.argv else unittest.main()
