"""The last batch is filled up with empty samples: keys are masked with -inf, and of an empty sample nothing is left.
After pytorch issue 26098 (and jadore801120/attention-is-all-you-need-pytorch issue 5)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#26098"


class Pool(nn.Module):
    """Attention pooling with a key padding mask."""

    def __init__(self, clock, width):
        super().__init__()
        self.clock, self.score, self.value = clock, nn.Linear(width, 1), nn.Linear(width, width)

    def forward(self, x):
        empty = self.clock.batch["empty"]
        if self.clock.repaired:
            empty = empty & ~empty.all(1, keepdim=True)
        weights = self.score(x).squeeze(-1).masked_fill(empty, float("-inf")).softmax(-1)
        return x + (weights.unsqueeze(-1) * self.value(x)).sum(1, keepdim=True)


class Filler(Fault):
    left = 0

    def part(self, width):
        return Pool(self.clock, width)

    def batch(self, batch):
        empty = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        empty[::2, 11:] = True
        if self.clock.striking:
            empty[-1, self.left:] = True
        return batch | {"empty": empty}


TRUTH = Truth(cause="ALL_MASKED_ROW", phase="forward", op=("_softmax",), module=("{place}.inner",), origin="op", value="nan",
              precision="structural", fixes=("op",), harm=("loss", "gradient", "weight", "state"), decoys=("masked_fill",),
              by="nan_birth")
QUIET = Truth(decoys=("masked_fill",))
CASES = [
    Case("fp32", Filler, Program("encoder"), TRUTH, {}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("bf16", Filler, Program("unet", "sgd", "bf16"), TRUTH, {}, ANY_LOOP | ANY_PLACE),
    Case("autocast", Filler, Program("decoder", "adamw_fused", "autocast_bf16", place="late"), TRUTH, {}, ANY_LOOP),
    Case("one_left", Filler, Program("lstm"), QUIET, {"left": 1}, ANY_NET | ANY_LOOP | ANY_OPTIMIZER),
]

if __name__ == "__main__":
    main(CASES)
