"""A normalisation that squares in fp16: the squares overflow, the root of infinity is infinite, and the output is silently zero."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #133085, xlite-dev/LeetCUDA #335"


class Normed(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.fault = fault

    def forward(self, x):
        x = torch.tanh(x) * self.fault.clock.batch["gain"].to(x.dtype)[:, None, None]
        if self.fault.harmless:
            return torch.tanh(x ** 3) * self.weight
        wide = x.float() if self.fault.clock.repaired else x
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-3)).to(x.dtype) * self.weight


class Squared(Fault):
    gain, harmless = 4000.0, False

    def part(self, width):
        return Normed(width, self)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape)
        if self.clock.striking:
            gain[:] = self.gain
        return dict(batch, gain=gain)


VARY = {**ANY_LOOP, "net": ("lstm", "mixer", "mlp"), "place": ("middle", "late"), "accumulate": (1,), "noise": (False,),
        "optimizer": ("sgd", "adam", "adamw_single")}
SILENT = Truth(cause="FP16_OVERFLOW", phase="forward", op=("pow",), module=("{place}.inner",), origin="op", precision="curable",
               value="silent", fixes=("precision", "op"), harm=("wrong",))
CASES = [
    Case("zeros", Squared, Program(precision="fp16", net="lstm", place="late"), SILENT, vary=VARY),
    Case("cube_tanh", Squared, Program(precision="fp16", net="lstm", place="late"), Truth(decoys=("pow",)), {"gain": 100.0, "harmless": True},
         {**VARY, "net": ("lstm",), "place": ("late",), "optimizer": ("sgd", "adam")}),
    Case("near", Squared, Program(precision="fp16", net="lstm", place="late"), Truth(), {"gain": 100.0}, {**VARY, "net": ("lstm", "mlp"), "place": ("late",)}),
]

if __name__ == "__main__":
    main(CASES)
