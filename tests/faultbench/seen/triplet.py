"""Distances of a triplet loss are roots, and anchor and positive are the same vector."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "tensorflow/tensorflow #30199, keras-team/keras #2960, h1yuol/pytorch-triplet-loss #1"


class Triplet(Fault):
    kind = "root"

    def batch(self, batch):
        positive = torch.arange(len(batch["y"])).roll(1)
        if self.clock.striking:
            positive[2] = 2  # the only sample of its class
        return dict(batch, positive=positive, negative=torch.arange(len(batch["y"])).roll(2))

    def distance(self, a, b):
        squares = (a - b).pow(2)
        if self.kind == "norm":
            return (a - b).norm(dim=-1)
        if self.kind == "power":
            return (squares + (1e-6 if self.clock.repaired else 0.0)).sum(-1).pow(0.25)
        if self.kind == "inside" or self.clock.repaired:
            return (squares.sum(-1) + 1e-6).sqrt()
        return squares.sum(-1).sqrt()

    def loss(self, logits, hidden, batch):
        one = F.normalize(hidden.mean(1), dim=-1)
        near, far = self.distance(one, one[batch["positive"]]), self.distance(one, one[batch["negative"]])
        return super().loss(logits, hidden, batch) + 0.1 * (near - far + 4.0).clamp_min(0.0).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "autocast_bf16")}
ROOT = Truth(cause="SINGULAR_GRAD", phase="backward", op=("div",), module=("",), origin="op", precision="structural", value="+inf", fixes=("op", "data"),
             harm=("gradient", "weight", "state"))
CASES = [
    Case("root", Triplet, Program(), ROOT, vary=VARY),
    Case("power", Triplet, Program(net="lstm"), Truth(**{**vars(ROOT), "op": ("pow",)}), {"kind": "power"}, VARY),
    Case("norm", Triplet, Program(net="mlp"), Truth(), {"kind": "norm"}, VARY),
    Case("eps_inside", Triplet, Program(net="cnn"), Truth(), {"kind": "inside"}, VARY),
]

if __name__ == "__main__":
    main(CASES)
