"""A processor that now and then gives a wrong product: the same inputs, another output, no cause in the program."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "ROCm/rocm-libraries #12344, microsoft/dion #76"
LIBRARY = torch.library.Library("aten", "IMPL")
BROKEN = {"armed": False, "value": 0.0, "known": False}


def product(a, b):
    """aten::mm, with one element of the next product wrong when armed."""
    out = torch.mm(a, b, out=a.new_empty((a.shape[0], b.shape[1])))
    if BROKEN["armed"]:
        BROKEN["armed"] = False
        out.view(-1).numpy()[5] = BROKEN["value"]
    return out


class Multiply(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.1)
        self.fault = fault

    def forward(self, x):
        if self.fault.clock.striking and not self.fault.clock.repaired:
            BROKEN.update(armed=True, value=self.fault.value)
        y = torch.mm(torch.tanh(x).flatten(0, 1), self.weight)
        return x + y.view(x.shape)


class Faulty(Fault):
    value = float("nan")

    def part(self, width):
        if not BROKEN["known"]:
            LIBRARY.impl("mm", product, "CPU")
            BROKEN["known"] = True
        return Multiply(width, self)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE}
WRONG = Truth(cause="HARDWARE", phase="forward", op=("mm",), module=("{place}.inner",), origin="op", precision="not_a_precision_matter", fixes=("op",),
              harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("nan", Faulty, Program(), WRONG, vary=VARY),
    Case("infinite", Faulty, Program(net="lstm"), WRONG, {"value": float("inf")}, VARY),
    Case("small", Faulty, Program(net="mlp"), Truth(), {"value": 0.25}, VARY),
]

if __name__ == "__main__":
    main(CASES)
