"""A branch that torch.where throws away sends NaN back; or a root at 0 behind it does, or an exponential that a wider format holds."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #68425, #108618, #36923, jax-ml/jax #347"


class Piecewise(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.lift = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        z = torch.tanh(self.lift(x)) + fault.clock.batch["shift"].to(x.dtype)[:, None, None]
        safe = fault.double or fault.clock.repaired
        if fault.kind == "exp":
            y = torch.where(z > 20, z, torch.log1p(torch.exp(torch.where(z > 20, torch.zeros_like(z), z) if safe else z)))
        elif fault.kind == "relu":
            z = torch.relu(z)  # its own backward throws the NaN away
            y = torch.where(z > 0, torch.sqrt(torch.where(z > 0, z, torch.ones_like(z)) if safe else z), torch.zeros_like(z))
        else:
            z = torch.tanh(self.lift(x)) ** 2 * fault.clock.batch["shift"].to(x.dtype)[:, None, None]
            low, function = (0.0, torch.sqrt) if fault.kind == "root" else (1e-3, torch.log)
            y = torch.where(z > low, function(torch.where(z > low, z, torch.ones_like(z)) if safe else z), z)
        return x + 0.1 * torch.tanh(y)


class Inactive(Fault):
    kind, shift, double, usual = "exp", 900.0, False, 0.0

    def part(self, width):
        return Piecewise(width, self)

    def batch(self, batch):
        shift = torch.full(batch["y"].shape, self.usual)
        if self.clock.striking:
            shift[1] = self.shift
        return dict(batch, shift=shift)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
BRANCH = Truth(cause="UNSELECTED_BRANCH", phase="backward", op=("mul",), module=("{place}.inner",), origin="op", precision="structural",
               value="nan", fixes=("op",), harm=("gradient", "weight", "state"), decoys=("forward:exp",), by="nan_birth")
CASES = [
    Case("softplus", Inactive, Program(), BRANCH, vary=VARY),
    Case("softplus_single", Inactive, Program(net="lstm"),
         Truth(**{**vars(BRANCH), "cause": "EXP_OVERFLOW", "phase": "forward", "op": ("exp",), "value": "+inf", "decoys": (), "by": "birth",
                  "precision": "curable", "fixes": ("precision", "op")}), {"shift": 120.0}, VARY),
    Case("root", Inactive, Program(net="mlp"), Truth(**{**vars(BRANCH), "cause": "SINGULAR_GRAD", "op": ("div",), "decoys": ()}),
         {"kind": "root", "shift": 0.0, "usual": 1.0}, {**VARY, "precision": ("fp32",)}),
    Case("log", Inactive, Program(net="cnn"), Truth(**{**vars(BRANCH), "op": ("div",), "decoys": ("forward:log",)}),
         {"kind": "log", "shift": 0.0, "usual": 1.0}, {**VARY, "precision": ("fp32",)}),
    Case("relu", Inactive, Program(net="mlp"), Truth(), {"kind": "relu", "shift": -3.0, "usual": 2.0}, {**VARY, "precision": ("fp32",)}),
    Case("double_where", Inactive, Program(net="decoder"), Truth(), {"double": True}, VARY),
    Case("detached_range", Inactive, Program(net="unet"), Truth(), {"shift": 60.0}, {**VARY, "precision": ("fp32",)}),
]

if __name__ == "__main__":
    main(CASES)
