"""An adapter is thawed in mid-training and gets Adam with its usual epsilon, in the format of the weights.
After google-deepmind/optax issue 1754 (a frozen-then-unfrozen layer, float16) and afiaka87/glide-finetune issue 5."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

from optimizers import HandAdam

SOURCE = "google-deepmind/optax#1754"


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.table = nn.Parameter(torch.zeros(4, width))

    def forward(self, x):
        return x + self.shift + self.table[0]


class Thaw(Fault):
    eps = 1e-8

    def part(self, width):
        return Adapter(width)

    def optimizer(self, net):
        adapter = getattr(net, self.clock.program.place).inner
        fresh = {id(p) for p in adapter.parameters()}
        for p in adapter.parameters():
            p.requires_grad_(False)
        own = 1e-3 if self.clock.repaired else self.eps
        groups = [{"params": [p for p in net.parameters() if id(p) not in fresh], "eps": 1e-3},
                  {"params": list(adapter.parameters()), "eps": own}]
        return HandAdam(groups, lr=1e-3)

    def after_step(self, net, optimizer):
        if not self.clock.control and self.clock.step == self.clock.program.strike - 1:
            for p in getattr(net, self.clock.program.place).inner.parameters():
                p.requires_grad_(True)


TRUTH = Truth(cause="EPS_UNDERFLOW", also=("DIV_ZERO",), phase="optimizer", op=("div",), origin="op", precision="curable",
              fixes=("precision", "hyperparameter"), harm=("weight",))
CASES = [
    Case("fp16", Thaw, Program("encoder", "hand", "fp16"), TRUTH, {}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("fp16_late", Thaw, Program("mlp", "hand", "fp16", place="late", accumulate=2), TRUTH, {"eps": 2e-8}, ANY_LOOP | ANY_PLACE),
    Case("bf16_keeps_it", Thaw, Program("decoder", "hand", "bf16"), Truth(), {}, ANY_NET | ANY_LOOP),
    Case("fp16_larger", Thaw, Program("cnn", "hand", "fp16"), Truth(), {"eps": 1e-3}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
