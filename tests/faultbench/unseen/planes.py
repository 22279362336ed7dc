"""Two additive mask planes, each with the lowest number of the format, are summed: a cell that both mask leaves the range.
Rows of a filler sample are masked by both everywhere. After NVIDIA-NeMo/Automodel pull request 2658."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "NVIDIA-NeMo/Automodel#2658"


class Masked(nn.Module):
    def __init__(self, clock, width, floor):
        super().__init__()
        self.clock, self.floor = clock, floor
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        real = self.clock.batch["real"]
        plane = torch.zeros(real.shape, dtype=x.dtype).masked_fill(~real, self.floor)
        if self.clock.repaired:
            mask = torch.where(real[:, None, :] & real[:, :, None], 0.0, self.floor).to(x.dtype)
        else:
            mask = plane[:, None, :] + plane[:, :, None]
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1]
        return x + (scores * 0.1 + mask).softmax(-1) @ x


class Planes(Fault):
    keep = 0

    def part(self, width):
        return Masked(self.clock, width, self.floor)

    def batch(self, batch):
        real = torch.ones(batch["ids"].shape, dtype=torch.bool)
        real[1, 12:] = False
        if self.clock.striking:
            real[-1, self.keep:] = False
        return batch | {"real": real}


TRUTH = Truth(cause="MASK_OVERFLOW", phase="forward", op=("add",), module=("{place}.inner",), origin="op", value="-inf",
              precision="curable", fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
LOW = {"fp16": -65504.0, "bf16": -3.3895313892515355e38, "fp32": -3.4028234663852886e38}
CASES = [
    Case("fp16", Planes, Program("encoder", "sgd", "fp16"), TRUTH, {"floor": LOW["fp16"]}, ANY_NET | ANY_LOOP),
    Case("bf16", Planes, Program("mixer", "adamw_foreach", "bf16", place="late"), TRUTH, {"floor": LOW["bf16"]}, ANY_LOOP | ANY_PLACE),
    Case("fp32", Planes, Program("decoder", "adam", "fp32"), Truth(**TRUTH.__dict__ | {"decoys": ("full",)}),
         {"floor": LOW["fp32"]}, ANY_LOOP | {"optimizer": ("adam", "adamw_single", "hand")}),
    Case("one_real_token", Planes, Program("encoder", "adamw_fused", "bf16"), Truth(decoys=("add",)),
         {"floor": LOW["bf16"], "keep": 1}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
