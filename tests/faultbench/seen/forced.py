"""A token is forced by a logit of +inf, and softmax takes inf - inf."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #49724, google-deepmind/optax #896"


class Route(nn.Module):
    """Experts are weighed by a softmax; a sample may force its expert."""

    def __init__(self, width, fault):
        super().__init__()
        self.gate, self.experts = nn.Linear(width, 4), nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.fault = fault

    def forward(self, x):
        force = self.fault.clock.batch["force"][:, None, :]
        value = 50.0 if self.fault.clock.repaired else self.fault.value
        scores = self.gate(x).masked_fill(force, value)
        if self.fault.shut:
            scores = self.gate(x).masked_fill(~force & force.any(-1, keepdim=True), -math.inf)
        weights = scores.softmax(-1)
        return x + sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


class Forced(Fault):
    value, shut = math.inf, False

    def part(self, width):
        return Route(width, self)

    def batch(self, batch):
        force = torch.zeros(batch["y"].shape[0], 4, dtype=torch.bool)
        if self.clock.striking:
            force[1, 2] = True
        return dict(batch, force=force)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
LOGIT = Truth(cause="INF_LOGIT", phase="forward", op=("_softmax",), module=("{place}.inner",), origin="op", precision="structural", value="nan",
              fixes=("op",), harm=("loss", "gradient", "weight", "state"), decoys=("masked_fill",), by="nan_birth")
CASES = [
    Case("expert", Forced, Program(), LOGIT, vary=VARY),
    Case("others_shut", Forced, Program(net="lstm"), Truth(decoys=("masked_fill",)), {"shut": True}, VARY),
    Case("large", Forced, Program(net="mlp"), Truth(), {"value": 80.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
