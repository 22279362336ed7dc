"""A temperature is annealed to zero, or a branch is dropped with probability one."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "gorgonia/gorgonia #399, elixir-nx/axon #367, Lightning-Universe/lightning-bolts #811"


class Mixture(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.gate, self.side = nn.Linear(width, width), nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        value = self.fault.setting()
        if self.fault.kind == "temperature":
            return x + (torch.tanh(self.gate(x)) / value).softmax(-1) * self.side(x)
        keep = 1.0 - value
        mask = x.new_empty((x.shape[0], 1, 1)).bernoulli_(keep)
        if keep > 0 or not self.fault.guarded:
            mask = mask / keep
        return x + self.side(x) * mask


class Temperature(Fault):
    kind, least, guarded = "temperature", 0.0, False

    def part(self, width):
        return Mixture(width, self)

    def setting(self):
        clock = self.clock
        on = clock.step == clock.program.strike and not clock.control and not clock.repaired
        if self.kind == "temperature":
            return self.least if on else 1.0 / (1 + clock.step)
        return 1.0 if on else 0.3


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16"), "accumulate": (1,), "noise": (False,)}
ZERO = Truth(cause="BAD_SETTING", phase="forward", op=("div",), module=("{place}.inner",), origin="setting", precision="not_a_precision_matter",
             fixes=("hyperparameter",), harm=("loss", "gradient", "weight", "state"), by="setting")
CASES = [
    Case("annealed", Temperature, Program(), ZERO, vary=VARY),
    Case("dropped", Temperature, Program(net="lstm"), Truth(**{**vars(ZERO), "value": "nan"}), {"kind": "drop"}, VARY),
    Case("dropped_guarded", Temperature, Program(net="mlp"), Truth(), {"kind": "drop", "guarded": True}, VARY),
    Case("cold", Temperature, Program(net="cnn"), Truth(), {"least": 0.05}, VARY),
]

if __name__ == "__main__":
    main(CASES)
