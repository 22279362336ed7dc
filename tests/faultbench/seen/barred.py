"""Classes that can't be are barred by a logit of -inf, and the loss is not a softmax but one sigmoid a class."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #49844, #135359, pyro-ppl/numpyro #2240"


class Barred(Fault):
    kind, value = "sigmoid", -math.inf

    def batch(self, batch):
        size, y = len(batch["y"]), batch["y"]
        barred, sure = torch.zeros(size, 8, dtype=torch.bool), torch.zeros(size, 8, dtype=torch.bool)
        if self.clock.striking:
            barred[1, (y[1] + 1) % 8] = barred[1, (y[1] + 3) % 8] = True
            sure[1, y[1]] = True
        return dict(batch, barred=barred, sure=sure)

    def loss(self, logits, hidden, batch):
        value = math.copysign(30.0, self.value) if self.clock.repaired else self.value
        if self.kind == "focal":  # the bar is added, so that what comes back goes to the net
            logits = logits + torch.zeros_like(logits).masked_fill(batch["barred"], value)
        else:
            logits = logits.masked_fill(batch["sure" if self.kind == "sure" else "barred"], value)
        if self.kind in ("softmax", "sure"):
            return F.cross_entropy(logits, batch["y"])
        target = F.one_hot(batch["y"], 8).to(logits.dtype)
        if self.kind == "probabilities":
            return F.binary_cross_entropy(torch.sigmoid(logits), target)
        loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        if self.kind == "focal":  # the less sure, the more weight
            loss = loss * (1 - torch.exp(-loss)).pow(2)
        return loss.mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}
LOGIT = {"cause": "INF_LOGIT", "phase": "forward", "module": ("",), "origin": "op", "precision": "structural", "value": "nan", "fixes": ("op",),
         "decoys": ("masked_fill",), "by": "nan_birth"}
SIGMOID = ("binary_cross_entropy_with_logits",)
ALL = ("loss", "gradient", "weight", "state")
CASES = [
    # The gradient is the sigmoid minus the target, and that is finite: the loss alone is NaN.
    Case("sigmoid", Barred, Program(net="mlp", optimizer="adamw_single"), Truth(**LOGIT, op=SIGMOID, harm=("loss",)), vary=VARY),
    Case("focal", Barred, Program(net="unet", optimizer="adam"), Truth(**LOGIT, op=SIGMOID, harm=ALL), {"kind": "focal"}, VARY),
    Case("sure", Barred, Program(net="lstm", optimizer="sgd"), Truth(**LOGIT, op=("_log_softmax",), harm=ALL), {"kind": "sure", "value": math.inf}, VARY),
    Case("softmax", Barred, Program(net="encoder"), Truth(decoys=("masked_fill",)), {"kind": "softmax"}, VARY),
    Case("probabilities", Barred, Program(net="cnn"), Truth(decoys=("masked_fill",)), {"kind": "probabilities"}, {**VARY, "precision": ("fp32",)}),
]

if __name__ == "__main__":
    main(CASES)
