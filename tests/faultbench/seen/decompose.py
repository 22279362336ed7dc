"""A weight is split into direction and size; a pruned row has no direction."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "KohakuBlueleaf/LyCORIS #166, google/flax #1671"


class Decomposed(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.direction, self.size = nn.Parameter(torch.randn(width, width) * 0.1), nn.Parameter(torch.ones(width, 1) * 0.5)
        self.fault = fault

    def forward(self, x):
        if self.fault.kind == "library":
            return x + F.linear(x, self.size * F.normalize(self.direction, dim=1))
        norm = self.direction.norm(dim=1, keepdim=True)
        norm = norm + 1e-6 if self.fault.clock.repaired else norm
        return x + F.linear(x, self.size * (self.direction / norm))


class Decompose(Fault):
    kind, left = "plain", 0.0

    def part(self, width):
        return Decomposed(width, self)

    def between(self, net, optimizer):
        """Magnitude pruning of a row, with its moments."""
        if self.clock.step == self.clock.program.strike and not self.clock.control:
            direction = getattr(net, self.clock.program.place).inner.direction
            with torch.no_grad():
                direction[3] = self.left
            for value in optimizer.state[direction].values():
                if isinstance(value, torch.Tensor) and value.shape == direction.shape:
                    value[3] = 0.0


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
DIV = Truth(cause="DIV_ZERO", phase="forward", op=("div",), module=("{place}.inner",), origin="op", also_origin=("parameter",),
            precision="structural", value="nan", fixes=("op",), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("pruned", Decompose, Program(), DIV, vary=VARY),
    Case("normalize", Decompose, Program(net="lstm"), Truth(), {"kind": "library"}, {**VARY, "after": (0,), "precision": ("fp32",)}),
    Case("tiny", Decompose, Program(net="mlp"), Truth(), {"left": 1e-4}, {**VARY, "precision": ("fp32",)}),
]

if __name__ == "__main__":
    main(CASES)
