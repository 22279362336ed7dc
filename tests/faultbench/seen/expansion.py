"""Distances as a² + b² - 2ab: rounding makes some of them negative, and the root of those is NaN."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "lucidrains/vector-quantize-pytorch #106, open-mmlab/mmcv #2178, Lightning-AI/torchmetrics #1351"


class Distances(nn.Module):
    """Each token is weighed by its distances to a codebook of the tokens of its own sample."""

    def __init__(self, width, fault):
        super().__init__()
        self.out = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        offset = self.fault.clock.batch["offset"].to(x.dtype)[:, None, None]
        a = torch.tanh(x) * 0.1 + offset  # coordinates far from their origin
        b = a.detach() + 1e-3 * torch.sin(torch.arange(a.shape[-1], dtype=a.dtype))
        squares = (a * a).sum(-1, keepdim=True) + (b * b).sum(-1)[:, None, :] - 2 * (a @ b.transpose(1, 2))
        squares = squares.abs() + 1e-3 if self.fault.clock.repaired else squares.clamp_min(1e-6) if self.fault.guarded else squares
        return x + self.out(x) * torch.exp(-squares.sqrt()).mean(-1, keepdim=True)


class Expansion(Fault):
    far, guarded = 1000.0, False

    def part(self, width):
        return Distances(width, self)

    def batch(self, batch):
        offset = torch.zeros(batch["y"].shape)
        if self.clock.striking:
            offset[:] = self.far
        return dict(batch, offset=offset)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE}
ROOT = Truth(cause="DOMAIN", phase="forward", op=("sqrt",), module=("{place}.inner",), origin="op", precision="curable", value="nan",
             fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("far_away", Expansion, Program(), ROOT, vary=VARY),
    Case("farther", Expansion, Program(net="unet"), ROOT, {"far": 5000.0}, VARY),
    Case("clamped", Expansion, Program(net="lstm"), Truth(), {"guarded": True}, VARY),
]

if __name__ == "__main__":
    main(CASES)
