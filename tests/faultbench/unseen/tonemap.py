"""A power or an arc of hidden values that leave its domain when an outlier comes.
After papagina/RotationContinuity issue 1 (acos beyond 1) and LeeDoYup/DeblurGAN-tf issue 11 (root of a negative)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "papagina/RotationContinuity#1"


class Tone(nn.Module):
    def __init__(self, clock, kind, width):
        super().__init__()
        self.clock, self.kind, self.linear = clock, kind, nn.Linear(width, width)

    def forward(self, x):
        u = self.linear(x).tanh() * self.clock.batch["gain"]
        if self.clock.repaired:
            u = u.clamp(-0.99, 0.99)
        if self.kind == "pow":
            return x + (1.1 + u).pow(0.4545)
        if self.kind == "acos":
            return x + 0.1 * (u * 0.9).acos()
        if self.kind == "square":
            return x + 0.01 * u.pow(2)
        return x + 0.1 * (1.1 - u).sqrt()


class Domain(Fault):
    def part(self, width):
        return Tone(self.clock, self.kind, width)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape[0], 1, 1)
        if self.clock.striking:
            gain[2] = 1e4
        return batch | {"gain": gain.to(batch["x"].dtype)}


BASE = dict(cause="DOMAIN", phase="forward", module=("{place}.inner",), origin="op", value="nan", precision="structural",
            fixes=("op",), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("pow", Domain, Program("unet", "adam"), Truth(op=("pow",), **BASE), {"kind": "pow"}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("acos", Domain, Program("mlp", "sgd"), Truth(op=("acos",), **BASE), {"kind": "acos"}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("sqrt_bf16", Domain, Program("decoder", "adamw_single", "bf16"), Truth(op=("sqrt",), **BASE), {"kind": "sqrt"}, ANY_LOOP | ANY_PLACE),
    Case("whole_exponent", Domain, Program("cnn"), Truth(), {"kind": "square"}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
