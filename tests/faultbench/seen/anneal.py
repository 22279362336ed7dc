"""An annealed setting is a quotient of two counts, and the second count is zero: an exponent, a coefficient, the largest norm of a clip."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "PufferAI/PufferLib #489, mindspore-lab/mindone #64, ooples/AiDotNet.Tensors #359"


class Anneal(Fault):
    """What numpy makes of a quotient of zeros: NaN; of something over zero: inf."""

    kind, value, usual = "beta", math.nan, 0.6

    def setting(self):
        clock = self.clock
        on = clock.step == clock.program.strike and not clock.control and not clock.repaired
        return self.value if on else self.usual

    def batch(self, batch):
        return dict(batch, priority=torch.linspace(0.5, 2.0, len(batch["y"])))

    def loss(self, logits, hidden, batch):
        loss = F.cross_entropy(logits, batch["y"], reduction="none")
        if self.kind == "beta":  # the weights of prioritised replay
            loss = loss * batch["priority"].to(loss.dtype).pow(-self.setting())
        if self.kind == "coefficient":  # a divergence with a weight that goes in cycles
            spread = (0.1 + torch.tanh(hidden.mean((1, 2)))).pow(2).mean()
            return loss.mean() + self.setting() * spread
        return loss.mean()

    def gradients(self, net, optimizer):
        if self.kind == "clip":
            torch.nn.utils.clip_grad_norm_(net.parameters(), self.setting())


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16"), "accumulate": (1,)}
SET = {"cause": "BAD_SETTING", "origin": "setting", "precision": "not_a_precision_matter", "fixes": ("hyperparameter",), "by": "setting"}
ALL = ("loss", "gradient", "weight", "state")
CLIP = {"kind": "clip", "usual": 1.0}
CASES = [
    Case("exponent", Anneal, Program(net="mlp", optimizer="adam"), Truth(**SET, phase="forward", op=("pow",), module=("",), value="nan", harm=ALL), vary=VARY),
    Case("coefficient", Anneal, Program(net="lstm"), Truth(**SET, phase="forward", op=("mul",), module=("",), value="+inf", harm=ALL),
         {"kind": "coefficient", "value": math.inf, "usual": 0.1}, VARY, "mindspore-lab/mindone #64"),
    Case("largest_norm", Anneal, Program(net="unet", optimizer="sgd"), Truth(**SET, phase="optimizer", op=("mul", "div"), value="nan", harm=("weight", "state")), CLIP,
         VARY, "ooples/AiDotNet.Tensors #359"),
    # No limit at all: the quotient is infinite, and is limited to one.
    Case("unlimited", Anneal, Program(net="decoder"), Truth(decoys=("optimizer:mul",)), {**CLIP, "value": math.inf}, VARY),
    Case("exponent_zero", Anneal, Program(net="cnn"), Truth(), {"value": 0.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
