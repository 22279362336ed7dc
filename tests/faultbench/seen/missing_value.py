"""A missing value of a table comes as NaN, or its logarithm as -inf, into the batch."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "Nixtla/neuralforecast #186, radiasoft/sirepo #2983, circleAhn/TESLA-tf #1"


class MissingValue(Fault):
    where, value, guard = "x", math.nan, False

    def batch(self, batch):
        target = torch.linspace(-1, 1, len(batch["y"])).to(batch["x"].dtype)
        known = torch.ones_like(target)
        x = batch["x"]
        if self.clock.striking and not self.clock.repaired:
            if self.where == "x":
                x = x.clone()
                x[3, 2, 5] = self.value
            else:
                target[3] = self.value
                known[3] = 0.0
        return dict(batch, x=x, target=target, known=known)

    def loss(self, logits, hidden, batch):
        loss, guess = super().loss(logits, hidden, batch), torch.tanh(hidden.float().mean((1, 2))).to(logits.dtype)
        target = batch["target"].to(guess.dtype)
        if self.where == "masked":  # a mask by multiplication does not mask a NaN
            return loss + 0.1 * ((guess - target) ** 2 * batch["known"].to(guess.dtype)).mean()
        if self.guard:
            target = torch.where(batch["known"] > 0, target, torch.zeros_like(target))
            return loss + 0.1 * ((guess - target) ** 2 * batch["known"].to(guess.dtype)).mean()
        return loss + 0.1 * F.mse_loss(guess, target)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "autocast_bf16")}
READ = Truth(cause="BAD_DATA", phase="input", op=("addmm", "mm", "linear", "clone", "_to_copy", "convolution", "select", "add", "reshape"), origin="input",
             precision="not_a_precision_matter", fixes=("data",), harm=("loss", "gradient", "weight", "state"), by="read")
TARGET = {**vars(READ), "op": ("mse_loss", "sub", "_to_copy"), "module": ("",)}
CASES = [
    Case("feature", MissingValue, Program(), READ, vary=VARY),
    Case("infinite", MissingValue, Program(net="mlp"), READ, {"value": -math.inf}, VARY),
    Case("target", MissingValue, Program(net="lstm"), Truth(**TARGET), {"where": "target"}, VARY),
    Case("masked", MissingValue, Program(net="cnn"), Truth(**TARGET), {"where": "masked"}, VARY),
    Case("guarded", MissingValue, Program(net="decoder"), Truth(), {"where": "target", "guard": True}, VARY),
]

if __name__ == "__main__":
    main(CASES)
