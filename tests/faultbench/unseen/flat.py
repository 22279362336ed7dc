"""Features are scaled by their range; a sample that is flat has none. After invesalius/invesalius3 pull request 1152 and
iver56/audiomentations pull request 49."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "invesalius/invesalius3#1152"


class Scaled(nn.Module):
    def __init__(self, clock, width, guard):
        super().__init__()
        self.clock, self.guard, self.linear = clock, guard, nn.Linear(16, width)

    def forward(self, x):
        raw = self.clock.batch["raw"].to(x.dtype)
        low, high = raw.amin(1, keepdim=True), raw.amax(1, keepdim=True)
        span = high - low
        if self.clock.repaired or self.guard:
            span = torch.where(span > 0, span, torch.ones_like(span))
        return x + 0.1 * self.linear((raw - low) / span).mean(1, keepdim=True) if raw.dim() == 3 else x


class Flat(Fault):
    guard = False

    def part(self, width):
        return Scaled(self.clock, width, self.guard)

    def batch(self, batch):
        raw = batch["x"].clone()
        if self.clock.striking:
            raw[4] = self.level
        return batch | {"raw": raw}


TRUTH = Truth(cause="DIV_ZERO", phase="forward", op=("div",), module=("{place}.inner",), origin="op", also_origin=("input",), value="nan",
              precision="structural", fixes=("op",), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("silence", Flat, Program("lstm", "adam"), TRUTH, {"level": 0.0}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("grey_bf16", Flat, Program("cnn", "adamw_single", "bf16", place="early"), TRUTH, {"level": 0.5}, ANY_LOOP | ANY_PLACE),
    Case("guarded", Flat, Program("decoder", "hand"), Truth(), {"level": 0.0, "guard": True}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
