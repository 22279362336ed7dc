"""A hand-made loss scaler halves (here: far more than halves) after every step, since its overflow flag is never cleared; in the
end 1/scale is infinite. After PaddlePaddle/Paddle issue 67895 and Junjue-Wang/FactSeg issue 6."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "Junjue-Wang/FactSeg#6"


class OwnScaler:
    def __init__(self, clock):
        self.clock = clock
        fall = -158.0 / clock.program.strike
        self._scale = torch.tensor(2.0**8)
        self.factor = 1.0 if clock.control or clock.repaired else 2.0**fall

    def is_enabled(self):
        return False

    def scale(self, loss):
        return loss * self._scale

    def step(self, optimizer):
        back = self._scale.reciprocal()
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(back)
        optimizer.step()

    def update(self):
        self._scale.mul_(self.factor)


class Backoff(Fault):
    def scaler(self):
        return OwnScaler(self.clock)


TRUTH = Truth(cause="LOSS_SCALE", also=("DIV_ZERO",), phase="optimizer", op=("reciprocal",), origin="loss_scale", value="+inf",
              precision="not_a_precision_matter", fixes=("hyperparameter",), harm=("weight", "state"))
LIGHT = Truth(**TRUTH.__dict__ | {"harm": ("weight",)})
CASES = [
    Case("adam", Backoff, Program("mlp", "adam"), TRUTH, {}, {"strike": (4, 6), "seed": (1, 2)} | ANY_NET),
    Case("fused", Backoff, Program("encoder", "adamw_fused"), TRUTH, {}, {"strike": (4, 5), "batch": (6, 8)}),
]

if __name__ == "__main__":
    main(CASES)
