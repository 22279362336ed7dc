"""Attention over a sample that is all padding: every key of its rows is masked with -inf."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #41508, #40932"


class Attend(nn.Module):
    """Self-attention over the hidden tokens, written out, with a mask of -inf where a key is padding."""

    def __init__(self, width, fault):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.fault = fault

    def forward(self, x):
        fault, pad = self.fault, self.fault.clock.batch["pad"]
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        low = torch.zeros(pad.shape, dtype=x.dtype).masked_fill(pad, fault.value)[:, None, :]
        scores = scores + low if fault.additive else scores.masked_fill(pad[:, None, :], fault.value)
        if fault.value == -math.inf and fault.clock.repaired:
            scores = scores.masked_fill(pad.all(1)[:, None, None], 0.0)
        weights = scores.softmax(-1)
        if fault.removed:
            weights = weights.masked_fill(pad.all(1)[:, None, None], 0.0)
        return x + weights @ self.v(x)


class Library(nn.Module):
    """torch's own layer, which gives weights too and so takes its written-out path."""

    def __init__(self, width, fault):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.fault = fault

    def forward(self, x):
        pad = self.fault.clock.batch["pad"]
        if self.fault.clock.repaired:
            pad = pad & ~pad.all(1, keepdim=True)
        return x + self.attention(x, x, x, key_padding_mask=pad, need_weights=True)[0]


class Padding(Fault):
    value, removed, additive, kind, whole = -math.inf, False, False, Attend, True

    def part(self, width):
        return self.kind(width, self)

    def batch(self, batch):
        pad = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        pad[1, 10:] = True
        if self.clock.striking and self.whole:
            pad[2] = True
        return dict(batch, pad=pad)


VARY = {**ANY_NET, **ANY_OPTIMIZER, **ANY_LOOP, **ANY_PLACE, "precision": ("fp32", "bf16")}
NAN = Truth(cause="ALL_MASKED_ROW", phase="forward", op=("_softmax",), module=("{place}.inner",), origin="op", precision="structural",
            value="nan", fixes=("data", "op"), harm=("loss", "gradient", "weight", "state"), decoys=("masked_fill",), by="nan_birth")
CASES = [
    Case("written_out", Padding, Program(), NAN, vary=VARY),
    Case("library", Padding, Program(net="lstm"),
         Truth(**{**vars(NAN), "module": ("{place}.inner.attention",), "decoys": ("forward:baddbmm",)}), {"kind": Library},
         {**VARY, "precision": ("fp32",)}),
    Case("removed_late", Padding, Program(net="mlp"),
         Truth(**{**vars(NAN), "harm": ("gradient", "weight", "state"), "also": ("UNSELECTED_BRANCH",), "decoys": ("masked_fill", "add")}),
         {"removed": True, "additive": True}, VARY),
    # The same, but the mask is filled in: what comes back through softmax is thrown away once more.
    Case("removed_twice", Padding, Program(net="lstm"), Truth(decoys=("masked_fill", "_softmax")), {"removed": True}, VARY),
    Case("partly", Padding, Program(net="cnn"), Truth(decoys=("masked_fill",)), {"whole": False}, VARY),
    Case("finite_mask", Padding, Program(net="unet"), Truth(), {"value": -1e4}, VARY),
]

if __name__ == "__main__":
    main(CASES)
