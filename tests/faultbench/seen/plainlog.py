"""Cross entropy by hand: log of a probability that has underflowed to zero."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "HealthML/active-segmentation #78, emited/VariationalRecurrentNeuralNetwork #2"


class PlainLog(Fault):
    kind, sure = "softmax", 150.0

    def batch(self, batch):
        weight = torch.zeros(batch["y"].shape)
        if self.clock.striking:
            weight[1] = self.sure  # a class prior that makes the sample certain
        return dict(batch, sure=weight)

    def loss(self, logits, hidden, batch):
        logits = logits.float() if logits.dtype == torch.bfloat16 else logits
        wrong = (batch["y"] + 1) % logits.shape[-1]
        logits = logits + F.one_hot(wrong, logits.shape[-1]) * batch["sure"].to(logits.dtype)[:, None]
        if self.clock.repaired or self.kind == "library":
            return F.cross_entropy(logits, batch["y"])
        if self.kind == "sigmoid":
            p = torch.sigmoid(logits)
            hit = F.one_hot(batch["y"], logits.shape[-1])
            return -(hit * p.clamp_min(1e-12).log() + (1 - hit) * (1 - p).log()).mean()
        return -logits.softmax(-1).gather(1, batch["y"][:, None]).log().mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "autocast_bf16")}
LOG = Truth(cause="LOG_ZERO", phase="forward", op=("log",), module=("",), origin="op", precision="curable", value="-inf",
            fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("softmax", PlainLog, Program(), LOG, vary=VARY),
    Case("softmax_far", PlainLog, Program(net="decoder"), Truth(**{**vars(LOG), "precision": "structural", "fixes": ("op",)}), {"sure": 2000.0}, VARY),
    Case("sigmoid", PlainLog, Program(net="cnn"), LOG, {"kind": "sigmoid", "sure": 27.0}, VARY),
    Case("library", PlainLog, Program(net="lstm"), Truth(), {"kind": "library"}, VARY),
    Case("near", PlainLog, Program(net="mlp"), Truth(), {"sure": 60.0}, {**VARY, "noise": (False,)}),
]

if __name__ == "__main__":
    main(CASES)
