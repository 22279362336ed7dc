"""A distance with a plain root: an anchor is its own positive, the distance is zero and its derivative infinite.
After tensorflow issue 30199 (triplets of equal samples)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "tensorflow/tensorflow#30199"


class Twins(Fault):
    kind = "sqrt"

    def batch(self, batch):
        other = torch.arange(batch["y"].shape[0]).roll(1)
        if self.clock.striking:
            other[2] = 2
        return batch | {"other": other}

    def loss(self, logits, hidden, batch):
        a = hidden.mean(1)
        gap = (a - a[batch["other"]]).pow(2).sum(-1)
        if self.kind == "sqrt":
            far = (gap + 1e-6).sqrt() if self.clock.repaired else gap.sqrt()
        elif self.kind == "pow":
            far = (gap + 1e-6).pow(0.25) if self.clock.repaired else gap.pow(0.25)
        else:
            far = (a - a[batch["other"]]).norm(dim=-1)
        return F.cross_entropy(logits, batch["y"]) + 0.01 * far.mean()


BASE = dict(cause="SINGULAR_GRAD", phase="backward", origin="op", value="+inf", precision="structural", fixes=("op",),
            harm=("gradient", "weight", "state"))
CASES = [
    Case("root", Twins, Program("cnn", "adam"), Truth(op=("div",), **BASE), {}, ANY_NET | ANY_LOOP),
    Case("root_accumulated", Twins, Program("decoder", "adamw_fused", "bf16", accumulate=2), Truth(op=("div",), **BASE), {}, {"strike": (3, 6)}),
    Case("quarter_power", Twins, Program("mixer", "adamw_foreach"), Truth(op=("pow", "mul"), **BASE), {"kind": "pow"}, ANY_NET | ANY_LOOP),
    Case("library_norm", Twins, Program("encoder", "hand"), Truth(), {"kind": "norm"}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
