"""An optimizer rescales each update by a ratio of norms; a layer without gradient makes it 0/0."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "microsoft/dion #24, dmlc/gluon-nlp #929, marin-community/marin #9054"


class Trust(torch.optim.Optimizer):
    """Momentum with a step in proportion to the norm of the weight (LARS and its like)."""

    def __init__(self, parameters, lr, guard):
        super().__init__(parameters, {"lr": lr, "guard": guard})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].mul_(group["momentum"] if "momentum" in group else 0.0).add_(p.grad)
                size = state["momentum"].norm()
                size = size.clamp_min(1e-8) if group["guard"]() else size
                p.sub_(group["lr"] * (p.norm() + 0.1) * (state["momentum"] / size))


class Branch(nn.Module):
    """An auxiliary branch that a schedule switches off: its weights then have a gradient of zeros."""

    def __init__(self, width, fault):
        super().__init__()
        self.side = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        return x + self.fault.clock.batch["share"].to(x.dtype) * self.side(torch.tanh(x))


class Quiet(Fault):
    guarded, share = False, 0.0

    def part(self, width):
        return Branch(width, self)

    def optimizer(self, net):
        return Trust(net.parameters(), 1e-3, lambda: self.guarded or self.clock.repaired)

    def batch(self, batch):
        off = not self.clock.control and self.clock.step == self.clock.program.strike
        return dict(batch, share=torch.tensor(self.share if off else 0.3))


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, "precision": ("fp32", "bf16")}
DIV = Truth(cause="DIV_ZERO", phase="optimizer", op=("div",), origin="op", precision="structural", value="nan", fixes=("op",), harm=("weight",))
CASES = [
    Case("switched_off", Quiet, Program(), DIV, vary=VARY),
    Case("guarded", Quiet, Program(net="lstm"), Truth(), {"guarded": True}, VARY),
    Case("small", Quiet, Program(net="mlp"), Truth(), {"share": 1e-6}, {**VARY, "precision": ("fp32",)}),
]

if __name__ == "__main__":
    main(CASES)
