"""Centred RMSprop: the variance of a steady gradient, E[g²] - E[g]², is negative after rounding."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "apache/mxnet #6235, CanReader/FastNN #12"


class CentredRMSprop(torch.optim.Optimizer):
    """As torch's with `centered`, but for `clamp`."""

    def __init__(self, parameters, lr, alpha, clamp):
        super().__init__(parameters, {"lr": lr, "alpha": alpha, "clamp": clamp})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            alpha = group["alpha"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["square"], state["mean"] = p.grad * p.grad, p.grad * 0.5
                state["square"].mul_(alpha).addcmul_(p.grad, p.grad, value=1 - alpha)
                state["mean"].mul_(alpha).add_(p.grad, alpha=1 - alpha)
                variance = state["square"].addcmul(state["mean"], state["mean"], value=-1)
                variance = variance.clamp_min(0.0) if group["clamp"]() else variance
                p.addcdiv_(p.grad, variance.sqrt().add_(1e-2), value=-group["lr"])


class Drift(nn.Module):
    """A part with a parameter whose gradient is always the same."""

    def __init__(self, width, fault):
        super().__init__()
        self.drift = nn.Parameter(torch.zeros(width))
        self.fault = fault

    def forward(self, x):
        self.fault.penalty = (self.drift * 2.993).sum()
        return x


class Centred(Fault):
    clamped, resumed = False, True

    def part(self, width):
        return Drift(width, self)

    def optimizer(self, net):
        return CentredRMSprop(net.parameters(), 1e-4, 0.3, lambda: self.clamped or self.clock.repaired)

    def loss(self, logits, hidden, batch):
        return super().loss(logits, hidden, batch) + self.penalty

    def between(self, net, optimizer):
        """Resuming from a checkpoint that keeps the moments in bf16."""
        if self.resumed and self.clock.step == self.clock.program.strike and not self.clock.control:
            for state in optimizer.state.values():
                for name in ("square", "mean"):
                    state[name] = state[name].bfloat16().to(state[name].dtype)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, "accumulate": (1,), "strike": (7, 8)}
ROOT = Truth(cause="DOMAIN", phase="optimizer", op=("sqrt",), origin="op", also_origin=("optimizer_state",), precision="structural",
             value="nan", fixes=("op",), harm=("weight",))
CASES = [
    Case("resumed", Centred, Program(strike=7), ROOT, vary=VARY),
    Case("clamped", Centred, Program(net="lstm", strike=7), Truth(), {"clamped": True}, VARY),
    Case("not_resumed", Centred, Program(net="cnn"), Truth(), {"resumed": False}, {**VARY, "strike": (3, 5, 8)}),
]

if __name__ == "__main__":
    main(CASES)
