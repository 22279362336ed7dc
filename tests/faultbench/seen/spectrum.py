"""Gradients of eigenvectors where eigenvalues are equal: a sample without content has the covariance of nothing."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #49886, #194705, jax-ml/jax #2311"


class Pool(nn.Module):
    """Second-order pooling: the leading axis of the covariance of some features is given to all tokens."""

    def __init__(self, width, fault):
        super().__init__()
        self.down, self.up = nn.Linear(width, 4), nn.Linear(4, width)
        self.fault = fault

    def forward(self, x):
        keep = self.fault.clock.batch["keep"].to(x.dtype)[:, None, None]
        z = torch.tanh(self.down(x)) * keep
        spread = torch.diag(torch.arange(4, dtype=x.dtype)) if self.fault.clock.repaired else 0.0
        covariance = z.transpose(1, 2) @ z / z.shape[1] + 1e-3 * torch.eye(4, dtype=x.dtype) + 1e-3 * spread
        if self.fault.kind == "values":
            return x + self.up(torch.linalg.eigvalsh(covariance))[:, None, :]
        _, vectors = torch.linalg.eigh(covariance)
        return x + self.up(vectors[..., -1] ** 2)[:, None, :]


class Spectrum(Fault):
    kind, blank = "vectors", True

    def part(self, width):
        return Pool(width, self)

    def batch(self, batch):
        keep = torch.ones(batch["y"].shape)
        if self.clock.striking:
            keep[2] = 0.0 if self.blank else 0.9
        return dict(batch, keep=keep)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE}
EQUAL = Truth(cause="DEGENERATE_LINALG", phase="backward", op=("div", "div_"), module=("{place}.inner",), origin="op", also_origin=("input",),
              precision="structural", fixes=("op", "data"), harm=("gradient", "weight", "state"))
CASES = [
    Case("vectors", Spectrum, Program(after=0), EQUAL, vary=VARY),
    Case("values", Spectrum, Program(net="lstm"), Truth(), {"kind": "values"}, VARY),
    Case("distinct", Spectrum, Program(net="mlp"), Truth(), {"blank": False}, VARY),
]

if __name__ == "__main__":
    main(CASES)
