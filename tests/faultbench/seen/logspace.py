"""Scores in log space, where -inf is the zero: a reduction over zeros alone has a gradient of NaN."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #31829, #49724, jax-ml/jax #6811"


class LogSpace(Fault):
    kind, blocked, filled = "logsumexp", True, False

    def prepare(self, net):
        self.states = nn.Linear(32, 6).to(next(net.parameters()).dtype)
        net.add_module("states", self.states)

    def batch(self, batch):
        path = torch.zeros(batch["y"].shape[0], 6, dtype=torch.bool)
        path[:, 4:] = True
        if self.clock.striking and self.blocked:
            path[1] = True  # no state is reachable
        return dict(batch, path=path)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        hidden = hidden.flatten(2).transpose(1, 2) if hidden.dim() == 4 else hidden
        zero = -1e4 if self.clock.repaired else -math.inf
        scores = self.states(hidden.mean(1))
        low = torch.zeros(batch["path"].shape, dtype=scores.dtype).masked_fill(batch["path"], zero)
        scores = scores.masked_fill(batch["path"], zero) if self.filled else scores + low
        if self.kind == "logaddexp":
            total = scores[:, 0]
            for i in range(1, 6):
                total = torch.logaddexp(total, scores[:, i])
        else:
            total = scores.logsumexp(-1)
        # Samples without a path are left out of the mean.
        return loss + 0.01 * torch.where(total == -math.inf, torch.zeros_like(total), total).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32",)}
BACK = Truth(cause="LOGSPACE_INF_GRAD", also=("UNSELECTED_BRANCH",), phase="backward", op=("sub",), origin="op", precision="structural",
             fixes=("op", "data"), harm=("gradient", "weight", "state"), decoys=("masked_fill", "forward:add"), by="nan_birth")
CASES = [
    Case("logsumexp", LogSpace, Program(), BACK, vary=VARY),
    Case("logaddexp", LogSpace, Program(net="lstm"), BACK, {"kind": "logaddexp"}, VARY),
    # What comes back through a filled-in mask is thrown away.
    Case("filled", LogSpace, Program(net="cnn"), Truth(decoys=("masked_fill", "backward:sub")), {"filled": True}, VARY),
    Case("reachable", LogSpace, Program(net="mlp"), Truth(decoys=("masked_fill",)), {"blocked": False}, VARY),
]

if __name__ == "__main__":
    main(CASES)
