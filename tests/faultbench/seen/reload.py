"""What is loaded from a checkpoint is bad: a weight, a running variance, a moment."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "facebookresearch/detectron2 #3160, pytorch/pytorch #1206, #88474"


class Frozen(nn.Module):
    """A linear layer and a batch norm whose statistics are fixed."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))
        self.register_buffer("seen", torch.zeros(width))
        self.fault = fault

    def forward(self, x):
        return x + torch.tanh(self.mix(x) - self.mean) * (self.var + 1e-5).rsqrt()


class Reload(Fault):
    what, value = "weight", math.nan

    def part(self, width):
        return Frozen(width, self)

    def between(self, net, optimizer):
        if self.clock.step != self.clock.program.strike or self.clock.control or self.clock.repaired:
            return
        part = getattr(net, self.clock.program.place).inner
        with torch.no_grad():
            if self.what == "weight":
                part.mix.weight[2, 3] = self.value
            elif self.what == "moment":
                state = optimizer.state[part.mix.weight]
                next(v for n, v in state.items() if n in ("exp_avg", "m", "momentum_buffer"))[2, 3] = self.value
            elif self.what == "second":
                state = optimizer.state[part.mix.weight]
                next(v for n, v in state.items() if n in ("exp_avg_sq", "v"))[2, 3] = self.value
            else:
                getattr(part, self.what)[4] = self.value


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, "optimizer": ("sgd", "adam", "adamw_foreach", "adamw_fused", "adamw_single", "hand"), "precision": ("fp32", "bf16")}
BAD = {"cause": "BAD_STATE", "phase": "input", "precision": "not_a_precision_matter", "fixes": ("data",), "by": "read"}
ALL = ("loss", "gradient", "weight", "state")
MOMENT = ("lerp_", "mul_", "_foreach_lerp_", "_foreach_mul_", "_fused_adamw_", "addcmul_")
CASES = [
    Case("weight", Reload, Program(), Truth(**BAD, op=("addmm", "mm", "linear", "t"), module=("{place}.inner.mix",), origin="parameter", harm=ALL), vary=VARY),
    Case("mean", Reload, Program(net="lstm"), Truth(**BAD, op=("sub",), module=("{place}.inner",), origin="buffer", harm=(*ALL, "buffer")), {"what": "mean"}, VARY),
    Case("variance", Reload, Program(net="mlp"),
         Truth(**{**BAD, "by": "birth", "phase": "forward", "precision": "structural"}, also=("DOMAIN",), op=("rsqrt",), module=("{place}.inner",),
               origin="buffer", also_origin=("op",), value="nan", harm=ALL), {"what": "var", "value": -0.01}, VARY),
    Case("moment", Reload, Program(net="cnn"), Truth(**BAD, op=MOMENT, origin="optimizer_state", harm=("weight", "state")), {"what": "moment"}, VARY),
    Case("second_moment", Reload, Program(net="decoder"), Truth(**BAD, op=MOMENT, origin="optimizer_state", harm=("weight", "state")),
         {"what": "second"}, {**VARY, "optimizer": ("adam", "adamw_foreach", "adamw_single", "hand")}),
    Case("unused", Reload, Program(net="unet"), Truth(tolerated=("buffer",)), {"what": "seen"}, VARY),
    Case("large", Reload, Program(net="mixer"), Truth(), {"what": "var", "value": 1e9}, VARY),
]

if __name__ == "__main__":
    main(CASES)
