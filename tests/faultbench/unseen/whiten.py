"""Whitening by eigenvectors of a covariance: a constant group of features makes equal eigenvalues, and backward divides by
their difference. After pytorch issue 49886 and jax issues 2311 and 8732."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#49886"


class Whiten(nn.Module):
    def __init__(self, clock, width, values_only):
        super().__init__()
        self.clock, self.values_only, self.reduce = clock, values_only, nn.Linear(width, 4)

    def forward(self, x):
        low = self.reduce(x).flatten(0, 1) * self.clock.batch["gain"]
        cov = low.T @ low / low.shape[0]
        if self.clock.repaired:
            cov = cov + torch.diag(torch.tensor([1e-2, 2e-2, 3e-2, 4e-2], dtype=cov.dtype))
        values, vectors = torch.linalg.eigh(cov)
        if self.values_only:
            return x + 0.01 * values.sum()
        return x + 0.01 * (vectors * (1 / (values.detach() + 1.0))).sum()


class Degenerate(Fault):
    values_only = False

    def part(self, width):
        return Whiten(self.clock, width, self.values_only)

    def batch(self, batch):
        return batch | {"gain": torch.tensor(0.0 if self.clock.striking else 1.0)}


TRUTH = Truth(cause="DEGENERATE_LINALG", phase="backward", op=("div", "div_", "linalg_eigh_backward", "_linalg_eigh"), module=("{place}.inner",),
              origin="op", precision="structural", fixes=("op",), harm=("gradient", "weight", "state"))
CASES = [
    Case("vectors", Degenerate, Program("mlp", after=0), TRUTH, {}, ANY_NET | ANY_LOOP | ANY_PLACE),
    Case("vectors_clip", Degenerate, Program("unet", "sgd", clip=1.0, place="late", after=0), TRUTH, {}, ANY_LOOP),
    Case("values_only", Degenerate, Program("encoder", "hand"), Truth(), {"values_only": True}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
