"""The standard deviation of a variational layer is exp of an unbounded log-variance."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pyg-team/pytorch_geometric #500, vanderschaarlab/synthcity #331"


class Sample(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.mean, self.logvar = nn.Linear(width, width), nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        x = torch.tanh(x)
        logvar = self.logvar(x) + self.fault.clock.batch["spread"].to(x.dtype)[:, None, None]
        if self.fault.clock.repaired:
            logvar = logvar.clamp(max=8.0)
        self.fault.kl = (logvar.exp() - 1 - logvar).mean()
        return self.mean(x) + 0.1 * torch.randn_like(x) * torch.exp(0.5 * logvar.clamp(max=4.0))


class Reparam(Fault):
    spread = 120.0

    def part(self, width):
        return Sample(width, self)

    def batch(self, batch):
        spread = torch.zeros(batch["y"].shape)
        if self.clock.striking:
            spread[2] = self.spread
        return dict(batch, spread=spread)

    def loss(self, logits, hidden, batch):
        return super().loss(logits, hidden, batch) + 1e-3 * self.kl


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
HALF = {**VARY, "net": ("encoder", "lstm", "mlp"), "optimizer": ("sgd", "adam", "adamw_single"), "precision": ("fp16",), "accumulate": (1,)}
EXP = Truth(cause="EXP_OVERFLOW", phase="forward", op=("exp",), module=("{place}.inner",), origin="op", precision="curable", value="+inf",
            fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("single", Reparam, Program(), EXP, vary=VARY),
    Case("far", Reparam, Program(net="decoder"), Truth(**{**vars(EXP), "precision": "structural", "fixes": ("op",)}), {"spread": 900.0}, VARY),
    Case("half", Reparam, Program(net="mlp", precision="fp16"), Truth(**{**vars(EXP), "also": ("FP16_OVERFLOW",)}), {"spread": 14.0}, HALF),
    Case("near", Reparam, Program(net="lstm"), Truth(), {"spread": 20.0}, {**VARY, "precision": ("fp32",)}),
]

if __name__ == "__main__":
    main(CASES)
