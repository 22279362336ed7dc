"""A loader refills a batch in shared memory while the step still reads it; and a bit that flips in a stored activation.
After libffcv/ffcv issue 37 (non_blocking reads of a reused buffer) and AlexeyAB/darknet issue 5547 (faulty hardware)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

import ctypes

SOURCE = "libffcv/ffcv#37"


class Strike(nn.Module):
    def __init__(self, clock, width, kind):
        super().__init__()
        self.clock, self.kind, self.linear = clock, kind, nn.Linear(width, width)
        self.features = nn.Linear(16, width)

    def forward(self, x):
        shared = self.clock.batch["shared"]
        x = x + 0.1 * self.features(shared).mean(1, keepdim=True)
        hidden = self.linear(x)
        if self.clock.striking and not self.clock.repaired:
            if self.kind == "refill":
                shared.numpy()[1, 3, :] = float("nan")   # another thread of the loader would do this
            elif self.kind == "flip":
                self.flip(hidden)
            elif self.kind == "same":
                shared.numpy()[1, 3, :] = shared.numpy()[1, 3, :]
        return x + 0.1 * hidden + 0.01 * shared.mean((1, 2), keepdim=True)

    @staticmethod
    def flip(hidden):
        cell = ctypes.c_uint32.from_address(hidden.data_ptr() + 40)
        cell.value |= 0x7F800000                          # the exponent's bits stick
        cell.value &= 0xFF800000


class Refill(Fault):
    def part(self, width):
        return Strike(self.clock, width, self.kind)

    def batch(self, batch):
        return batch | {"shared": batch["x"].clone()}


BASE = dict(precision="not_a_precision_matter", by="host", harm=("loss", "gradient", "weight", "state"), phase="forward")
RACE = Truth(cause="RACE", op=("mean",), origin="input", fixes=("data",), module=("{place}.inner",), **BASE)
FLIP = Truth(cause="HARDWARE", op=("addmm", "mul", "view"), origin="op", fixes=("data",), module=("{place}.inner", "{place}.inner.linear"), **BASE)
NETS = {"net": ("encoder", "decoder", "mixer", "mlp")}
CASES = [
    Case("refill", Refill, Program("encoder", "adam"), RACE, {"kind": "refill"}, NETS | ANY_LOOP),
    Case("flip", Refill, Program("mlp", "adamw_foreach"), FLIP, {"kind": "flip"}, NETS | ANY_LOOP),
    Case("same_values", Refill, Program("mixer", "adam"), Truth(), {"kind": "same"}, NETS | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
