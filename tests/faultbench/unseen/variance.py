"""A variational bottleneck whose log-variance is not bounded: its exponential leaves the range when an outlier comes.
After vanderschaarlab/synthcity issue 331."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "vanderschaarlab/synthcity#331"


class Bottleneck(nn.Module):
    def __init__(self, clock, width, reach):
        super().__init__()
        self.clock, self.reach = clock, reach
        self.mean, self.logvar, self.back = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        logvar = self.logvar(x).tanh() + self.clock.batch["wild"].to(x.dtype) * self.reach
        if self.clock.repaired:
            logvar = logvar.clamp(-30, 20)
        deviation = (0.5 * logvar).exp()
        noise = torch.linspace(-1, 1, x.shape[-1], dtype=x.dtype)
        return x + 0.1 * self.back(self.mean(x) + noise * deviation).tanh()


class Variance(Fault):
    def part(self, width):
        return Bottleneck(self.clock, width, self.reach)

    def batch(self, batch):
        wild = torch.zeros(batch["y"].shape[0], 1, 1)
        if self.clock.striking:
            wild[-2] = 1.0
        return batch | {"wild": wild}


BASE = dict(cause="EXP_OVERFLOW", also=("FP16_OVERFLOW",), phase="forward", op=("exp",), module=("{place}.inner",), origin="op", value="+inf")
HARM = {"harm": ("loss", "gradient", "weight", "state")}
FP16 = {"harm": ("loss", "gradient", "weight")}
CASES = [
    Case("fp32", Variance, Program("mixer", "adam"), Truth(precision="curable", fixes=("precision", "op"), **BASE, **HARM), {"reach": 300.0},
         ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("fp16", Variance, Program("encoder", "sgd", "fp16"), Truth(precision="curable", fixes=("precision", "op"), **BASE, **HARM), {"reach": 30.0},
         ANY_LOOP | ANY_PLACE),
    Case("any_format", Variance, Program("mlp", "adamw_single"), Truth(precision="structural", fixes=("op",), **BASE, **HARM), {"reach": 2000.0},
         ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("bounded", Variance, Program("decoder"), Truth(), {"reach": 20.0}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
