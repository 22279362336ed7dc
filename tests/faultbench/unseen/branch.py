"""A guard by where: the branch that is not taken is computed all the same, and its derivative is not a number.
After pytorch issues 52248, 156212 and 68425 and Ciela-Institute/caustics pull request 83."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "Ciela-Institute/caustics#83"


class Guarded(nn.Module):
    def __init__(self, clock, width, kind):
        super().__init__()
        self.clock, self.kind, self.linear = clock, kind, nn.Linear(width, width)

    def forward(self, x):
        u = self.linear(x) * self.clock.batch["present"].to(x.dtype)
        if self.kind == "ratio":
            r = u.abs()
            if self.clock.repaired:
                r = torch.where(r > 0, r, 1.0)
            return x + torch.where(u.abs() > 0, u / r, torch.zeros_like(u))
        if self.kind == "root":
            s = u * u
            if self.clock.repaired:
                return x + torch.where(s > 0, torch.where(s > 0, s, 1.0).sqrt(), 0.0)
            return x + torch.where(s > 0, s.sqrt(), torch.zeros_like(s))
        if self.kind == "detached":
            s = u * u
            return x + torch.where(s > 0, (s + 1e-6).sqrt(), torch.zeros_like(s))
        high = u + 900.0 * self.clock.batch["loud"].to(x.dtype)
        if self.clock.repaired:
            return x + 0.01 * torch.where(high <= 1, high.clamp(max=1).exp(), high)
        return x + 0.01 * torch.where(high <= 1, high.exp(), high)


class Branch(Fault):
    def part(self, width):
        return Guarded(self.clock, width, self.kind)

    def batch(self, batch):
        present, loud = torch.ones(batch["ids"].shape + (1,)), torch.zeros(batch["ids"].shape + (1,))
        if self.clock.striking:
            present[2, 5:] = 0.0
            loud[1, 3] = 1.0
        return batch | {"present": present, "loud": loud}


BASE = dict(cause="UNSELECTED_BRANCH", also=("SINGULAR_GRAD",), phase="backward", module=("{place}.inner",), origin="op",
            precision="structural", fixes=("op",), harm=("gradient", "weight", "state"))
ONLY = BASE | {"also": ()}
CASES = [
    Case("ratio", Branch, Program("mlp", "adamw_single"), Truth(op=("div",), decoys=("forward:div",), **ONLY), {"kind": "ratio"},
         ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("root", Branch, Program("cnn", "adam"), Truth(op=("div",), value="nan", **BASE), {"kind": "root"}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("exponential", Branch, Program("encoder"), Truth(op=("mul",), decoys=("exp",), by="nan_birth", **ONLY),
         {"kind": "exponential"}, ANY_LOOP | ANY_PLACE | {"net": ("encoder", "mlp", "lstm", "unet")}),
    Case("epsilon_inside", Branch, Program("mixer", "hand"), Truth(), {"kind": "detached"}, ANY_NET | ANY_LOOP | ANY_PLACE),
]

if __name__ == "__main__":
    main(CASES)
