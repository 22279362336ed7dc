"""Two parts of an attention are merged by their log-sums; a query that sees no key in either part has -inf in both."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "flashinfer-ai/flashinfer #4051, vllm-project/vllm #39148, tinygrad/tinygrad #17853"


class Parts(nn.Module):
    """Keys in two halves; each half gives a sum, a maximum and values, and the halves are put together."""

    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def half(self, q, k, v, pad):
        scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(pad[:, None, :], -math.inf)
        top = scores.amax(-1, keepdim=True).detach()
        weights = torch.exp(scores - torch.where(top == -math.inf, torch.zeros_like(top), top))
        return weights @ v, weights.sum(-1, keepdim=True), top

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        pad = self.fault.clock.batch["pad"]
        pad = pad[:, : x.shape[1]]
        (v1, s1, m1), (v2, s2, m2) = (self.half(q, k[:, i::2], v[:, i::2], pad[:, i::2]) for i in range(2))
        top = torch.maximum(m1, m2)
        if self.fault.floor or self.fault.clock.repaired:
            top = top.clamp_min(-1e4)
        one, two = torch.exp(m1 - top), torch.exp(m2 - top)
        return x + (v1 * one + v2 * two) / (s1 * one + s2 * two + 1e-6)


class Merge(Fault):
    floor, whole = False, True

    def part(self, width):
        return Parts(width, self)

    def batch(self, batch):
        pad = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        pad[1, 1::2] = True  # one half is empty: that is meant
        if self.clock.striking and self.whole:
            pad[1] = True
        return dict(batch, pad=pad)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
EMPTY = Truth(cause="LOGSPACE_INF_GRAD", phase="forward", op=("sub",), module=("{place}.inner",), origin="op", precision="structural", value="nan",
              fixes=("op", "data"), harm=("loss", "gradient", "weight", "state"), decoys=("masked_fill",), by="nan_birth")
CASES = [
    Case("both_empty", Merge, Program(), EMPTY, vary=VARY),
    Case("one_empty", Merge, Program(net="lstm"), Truth(decoys=("masked_fill",)), {"whole": False}, VARY),
    Case("floor", Merge, Program(net="mlp"), Truth(decoys=("masked_fill",)), {"floor": True}, VARY),
]

if __name__ == "__main__":
    main(CASES)
