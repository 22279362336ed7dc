"""Sums of squares and products that pass the end of fp32 or bf16, which is the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "tenstorrent/tt-metal #55159"


class Unit(nn.Module):
    """x over its root of mean squares, in the format of x; a counter feature of raw data makes x large."""

    def __init__(self, width, fault):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        x = x * fault.clock.batch["unit"].to(x.dtype)[:, None, None]
        if fault.kind == "prod":
            # A geometric mean by way of the product.
            g = (x.abs() + fault.clock.batch["unit"].to(x.dtype)[:, None, None]) if not fault.clock.repaired else x.abs().clamp(max=10) + 1
            return torch.tanh(x) * self.weight + g.prod(-1, keepdim=True).pow(1 / x.shape[-1])
        if fault.clock.repaired:
            x = x / x.abs().amax(-1, keepdim=True).clamp_min(1.0)
        return x * (x * x).mean(-1, keepdim=True).add(1e-5).rsqrt() * self.weight


class Wide(Fault):
    kind, unit = "norm", 3e19

    def part(self, width):
        return Unit(width, self)

    def batch(self, batch):
        unit = torch.ones(batch["y"].shape)
        if self.clock.striking:
            unit[:] = self.unit
        return dict(batch, unit=unit)


VARY = {**ANY_LOOP, **ANY_OPTIMIZER, "net": ("lstm", "mixer", "mlp"), "place": ("middle", "late"), "accumulate": (1,), "noise": (False,),
        "precision": ("fp32", "bf16")}
SILENT = Truth(cause="FP16_OVERFLOW", phase="forward", op=("mul",), module=("{place}.inner",), origin="op", precision="curable",
               value="silent", fixes=("precision", "op"), harm=("wrong",))
CASES = [
    Case("zeros", Wide, Program(net="lstm", place="late"), SILENT, {"unit": 1e23}, VARY),
    Case("product", Wide, Program(net="mlp"),
         Truth(**{**vars(SILENT), "op": ("prod",), "value": "+inf", "harm": ("loss", "gradient", "weight", "state")}),
         {"kind": "prod", "unit": 200.0}, {**VARY, **ANY_NET, **ANY_PLACE, "noise": (False, True), "precision": ("fp32",)}),
    Case("near", Wide, Program(net="lstm", place="late"), Truth(), {"unit": 1e15}, VARY),
]

if __name__ == "__main__":
    main(CASES)
