"""Cross entropy with one-hot targets over masked classes: zero times the logarithm of a probability that is zero on purpose."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "google-deepmind/optax #896, sooftware/kospeech #37, facebookresearch/pytext #1698"


class OneHot(Fault):
    kind = "mul"

    def batch(self, batch):
        closed = torch.zeros(batch["y"].shape[0], 8, dtype=torch.bool)
        if self.clock.striking:
            closed[torch.arange(len(closed)), (batch["y"] + 1) % 8] = True  # a class that the sample can't be
        return dict(batch, closed=closed)

    def loss(self, logits, hidden, batch):
        logits = logits.masked_fill(batch["closed"], -math.inf)
        hit = F.one_hot(batch["y"], logits.shape[-1]).to(logits.dtype)
        if self.clock.repaired:
            logits = logits.clamp_min(-1e4)
        if self.kind == "index":
            return F.cross_entropy(logits, batch["y"])
        log = logits.log_softmax(-1)
        if self.kind == "where":
            return -torch.where(hit > 0, log, torch.zeros_like(log)).sum(-1).mean()
        if self.kind == "entropy":
            p = logits.softmax(-1)
            return F.cross_entropy(logits, batch["y"]) + 0.01 * (p * log).sum(-1).mean()
        return -(hit * log).sum(-1).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}
ZERO = Truth(cause="ZERO_TIMES_INF", phase="forward", op=("mul",), module=("",), origin="op", precision="structural", value="nan",
             fixes=("op",), harm=("loss", "gradient", "weight", "state"), decoys=("masked_fill", "_log_softmax"), by="nan_birth")
CASES = [
    Case("product", OneHot, Program(), Truth(**{**vars(ZERO), "harm": ("loss",)}), vary=VARY),
    Case("entropy", OneHot, Program(net="lstm"), ZERO, {"kind": "entropy"}, VARY),
    Case("index", OneHot, Program(net="cnn"), Truth(decoys=("masked_fill",)), {"kind": "index"}, VARY),
    Case("where", OneHot, Program(net="decoder"), Truth(decoys=("masked_fill",)), {"kind": "where"}, VARY),
]

if __name__ == "__main__":
    main(CASES)
