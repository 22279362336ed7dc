"""A norm squares hidden values in their own small format: the mean square is infinite and the row comes out as zeros.
After pytorch pull request 133085 and huggingface/transformers issue 9295; batch norm in a skipped step after pytorch issue 88474."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#133085"


class Squares(nn.Module):
    def __init__(self, clock, width):
        super().__init__()
        self.clock, self.weight = clock, nn.Parameter(torch.ones(width))

    def forward(self, x):
        u = x * self.clock.batch["gain"].to(x.dtype)
        wide = u.float() if self.clock.repaired else u
        out = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return x + self.weight * out.to(x.dtype)


class Square(Fault):
    def part(self, width):
        return Squares(self.clock, width)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape[0], 1, 1)
        if self.clock.striking:
            gain[1:] = self.reach
        return batch | {"gain": gain}


class Skipped(Fault):
    """The scaler skips the step; the running statistics stay bad."""

    def batch(self, batch):
        if self.clock.striking and not self.clock.repaired:
            batch["x"][2] = batch["x"][2] * 6e4
        return batch


NORM = Truth(cause="FP16_OVERFLOW", phase="forward", op=("pow",), module=("{place}.inner",), origin="op", value="+inf", precision="curable",
             fixes=("precision", "op"), harm=("wrong",), note="silent: zeros where numbers belong")
STATS = Truth(cause="FP16_OVERFLOW", phase="forward", op=("convolution", "_to_copy"), origin="op", also_origin=("input",), precision="curable",
              fixes=("precision", "data"), harm=("loss", "gradient", "buffer"))
CASES = [
    Case("fp16", Square, Program("encoder", "sgd", "fp16"), NORM, {"reach": 3e3}, {"net": ("encoder", "decoder", "mixer", "mlp")} | ANY_LOOP),
    Case("fp16_clipped", Square, Program("unet", "sgd", "fp16", clip=1.0, place="late"), NORM, {"reach": 3e3}, {"strike": (3, 5)}),
    Case("statistics", Skipped, Program("cnn", "adam", "autocast_fp16"), STATS, {}, {"strike": (3, 6), "seed": (1, 2, 3)}),
    Case("bf16_fits", Square, Program("encoder", "sgd", "bf16"), Truth(), {"reach": 3e3}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
