"""The rate of a schedule whose decay has no steps: 0/0 or 1/0 in plain numbers, given to the optimizer without a word.
After mlcommons/hpc pull request 27; a temperature annealed to zero is the same fault."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "mlcommons/hpc#27"


class Rate(Fault):
    def after_step(self, net, optimizer):
        if not self.clock.control and not self.clock.repaired and self.clock.step == self.clock.program.strike - 1:
            for group in optimizer.param_groups:
                group["lr"] = self.rate


class Temperature(Fault):
    def loss(self, logits, hidden, batch):
        left = 0.0 if self.clock.struck and not self.clock.repaired else 1.0
        return F.cross_entropy(logits / left, batch["y"])


BASE = dict(cause="BAD_SETTING", origin="setting", precision="not_a_precision_matter", fixes=("hyperparameter",))
STEP = Truth(phase="optimizer", by="setting", harm=("weight",),
             op=("add_", "_foreach_add_", "_foreach_mul_", "mul_", "sub_", "_fused_adamw_", "mul", "_foreach_addcdiv_", "addcdiv_"), **BASE)
COLD = Truth(also=("DIV_ZERO",), phase="forward", by="setting", op=("div",), harm=("loss", "gradient", "weight", "state"), **BASE)
NAN = float("nan")
CASES = [
    Case("nan_rate_sgd", Rate, Program("cnn", "sgd"), STEP, {"rate": NAN}, ANY_NET | ANY_LOOP),
    Case("nan_rate_adamw", Rate, Program("encoder", "adamw_foreach"), STEP, {"rate": NAN}, ANY_LOOP | {"net": ("mlp", "unet", "encoder")}),
    Case("infinite_rate", Rate, Program("decoder", "hand"), STEP, {"rate": float("inf")}, ANY_LOOP | {"net": ("mlp", "mixer", "decoder")}),
    Case("cold", Temperature, Program("mixer", "adam"), COLD, {}, ANY_NET | ANY_LOOP),
    Case("rate_zero", Rate, Program("lstm", "adam"), Truth(), {"rate": 0.0}, ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
