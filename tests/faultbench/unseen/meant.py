"""Healthy programs full of infinities that are meant: running maxima that begin at -inf, a sentinel that a minimum takes away,
an overflow that tanh makes one, a scaler that finds its scale. After pytorch issue 46849 and apex issue 93 (false alarms)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "NVIDIA/apex#93"


class Meant(nn.Module):
    def __init__(self, clock, width, kind):
        super().__init__()
        self.clock, self.kind, self.linear = clock, kind, nn.Linear(width, width)

    def forward(self, x):
        u = self.linear(x)
        if self.kind == "maximum":
            top = torch.full(u.shape[:1] + u.shape[2:], float("-inf"), dtype=u.dtype)
            for t in range(min(4, u.shape[1])):
                top = torch.maximum(top, u[:, t])
            return x + 0.1 * top.unsqueeze(1)
        if self.kind == "sentinel":
            far = torch.full_like(u[..., :1], float("inf"))
            return x + 0.1 * torch.cat([u, far], -1).amin(-1, keepdim=True)
        if self.kind == "saturated":
            big = (u * 1e3).detach().pow(3)
            return x + 0.1 * big.tanh()
        return x + 0.1 * u


class Quiet(Fault):
    def part(self, width):
        return Meant(self.clock, width, self.kind)

    def scaler(self):
        if self.kind == "scaler":
            return torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=1000)
        return None


CASES = [
    Case("maximum", Quiet, Program("decoder", "adam"), Truth(decoys=("full",)), {"kind": "maximum"}, ANY_NET | ANY_LOOP | ANY_PLACE | ANY_OPTIMIZER),
    Case("sentinel", Quiet, Program("unet", "hand"), Truth(decoys=("full_like",)), {"kind": "sentinel"}, ANY_NET | ANY_LOOP | ANY_PLACE | ANY_OPTIMIZER),
    Case("saturated", Quiet, Program("encoder", "sgd", "fp16"), Truth(decoys=("pow",)), {"kind": "saturated"}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("scaler", Quiet, Program("encoder", "adamw_foreach", "autocast_fp16", strike=12), Truth(), {"kind": "scaler"},
         {"net": ("encoder", "decoder", "mlp"), "seed": (1, 2)}),
]

if __name__ == "__main__":
    main(CASES)
