"""A log-space recursion that begins with log(0) everywhere but one state: where two empty paths meet, the gradient is inf - inf;
and the same in merging empty parts forward. After pytorch issues 31829 and 49724, tinygrad pull request 17853."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#31829"


class Chain(nn.Module):
    """Forward algorithm over the tokens; a state may stay or come from its left neighbour."""

    def __init__(self, clock, width, merge):
        super().__init__()
        self.clock, self.merge, self.emit = clock, merge, nn.Linear(width, 6)

    def forward(self, x):
        scores = self.emit(x).log_softmax(-1)
        if self.merge:
            return x + 0.01 * self.parts(scores).unsqueeze(-1)
        floor = -1e4 if self.clock.repaired else float("-inf")
        first = self.clock.batch["first"]
        alpha = torch.where(first, scores[:, 0], torch.full_like(scores[:, 0], floor))
        for t in range(1, min(4, x.shape[1])):
            left = torch.cat([alpha[:, :1], alpha[:, :-1]], 1)
            alpha = torch.logaddexp(alpha, left) + scores[:, t]
        return x + 0.01 * alpha.clamp(min=-50)[:, :1].unsqueeze(1)

    def parts(self, scores):
        open_ = self.clock.batch["open"].unsqueeze(-1)
        masked = torch.where(open_, scores, torch.full_like(scores, float("-inf")))
        one, two = masked.chunk(2, 1)
        m1, m2 = one.amax((1, 2)), two.amax((1, 2))
        top = torch.maximum(m1, m2)
        if self.clock.repaired:
            top = top.clamp(min=-1e4)
        total = (m1 - top).exp() + (m2 - top).exp()
        return total.reshape(-1, 1)


class Logspace(Fault):
    merge = False
    rows = True

    def part(self, width):
        return Chain(self.clock, width, self.merge)

    def batch(self, batch):
        size = batch["y"].shape[0]
        first, open_ = torch.ones(size, 6, dtype=torch.bool), torch.ones(size, 16, dtype=torch.bool)
        open_[0, 8:] = False
        if self.clock.striking and self.rows:
            first[1, :4] = False
            open_[1, :] = False
        return batch | {"first": first, "open": open_}


BASE = dict(cause="LOGSPACE_INF_GRAD", module=("{place}.inner",), origin="op", precision="structural", fixes=("op",), by="nan_birth")
BACK = Truth(phase="backward", op=("sub", "exp", "div", "logaddexp_backward", "mul"), harm=("gradient", "weight", "state"), **BASE)
FORE = Truth(phase="forward", op=("sub",), harm=("loss", "gradient", "weight", "state"), **BASE)
NETS = {"net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}
CASES = [
    Case("recursion", Logspace, Program("lstm", "adam"), BACK, {}, NETS | ANY_LOOP | ANY_PLACE),
    Case("merge", Logspace, Program("encoder"), FORE, {"merge": True}, NETS | ANY_LOOP | ANY_PLACE),
    Case("one_part_empty", Logspace, Program("mixer"), Truth(), {"merge": True, "rows": False}, NETS | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
