"""A loss scaler written by hand, whose scale grows to infinity or shrinks to zero."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #98828, #99640, facebookresearch/WSL-Images #9"


class HandScaler:
    """Grows every `interval` steps, halves on overflow, knows no limits."""

    def __init__(self, factor, interval, limit):
        self._scale, self.factor, self.interval, self.limit, self.good = torch.tensor(256.0), factor, interval, limit, 0

    def is_enabled(self):
        return True

    def scale(self, loss):
        return loss * self._scale.to(loss.dtype)

    def unscale_(self, optimizer):
        self.finite = all(bool(torch.isfinite(p.grad).all()) for g in optimizer.param_groups for p in g["params"] if p.grad is not None)
        if self.finite:
            inverse = self._scale.reciprocal()
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(inverse.to(p.grad.dtype))

    def step(self, optimizer):
        if self.finite:
            optimizer.step()

    def update(self):
        if not self.finite:
            self._scale.mul_(0.5)
            self.good = 0
            return
        self.good += 1
        if self.good == self.interval:
            self._scale.mul_(self.factor)
            if self.limit:
                self._scale.clamp_(*self.limit)
            self.good = 0


class Scaled(Fault):
    factor, limit = 1e38, ()

    def scaler(self):
        clock = self.clock
        limit = (1.0, 65536.0) if clock.repaired else self.limit
        return HandScaler(1.0 if clock.control else self.factor, clock.program.strike, limit)


VARY = {**ANY_NET, **ANY_OPTIMIZER, **ANY_LOOP, "strike": (3, 5, 8)}
GROWN = Truth(cause="LOSS_SCALE", phase="input", op=("mul",), origin="loss_scale", precision="not_a_precision_matter", fixes=("hyperparameter",),
              harm=("gradient",), by="read")
CASES = [
    Case("grown", Scaled, Program(after=0), GROWN, vary=VARY),
    Case("shrunk", Scaled, Program(net="lstm", after=0),
         Truth(cause="LOSS_SCALE", phase="optimizer", op=("reciprocal",), origin="loss_scale", precision="not_a_precision_matter", value="+inf",
               fixes=("hyperparameter",), harm=("weight", "state")), {"factor": 0.0}, VARY),
    Case("limited", Scaled, Program(net="mlp"), Truth(), {"limit": (1.0, 65536.0)}, VARY),
    Case("slow", Scaled, Program(net="cnn"), Truth(), {"factor": 2.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
