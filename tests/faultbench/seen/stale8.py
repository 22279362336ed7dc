"""fp8 with a scale from an earlier step: the new values pass the end of the format."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "jax-ml/ml_dtypes #400, meta-pytorch/float8_experimental #31, uxlfoundation/oneDNN #5626"


class Quantised(nn.Module):
    """A linear layer whose input is rounded to e5m2 by a scale that follows the largest value one step late."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.register_buffer("largest", torch.ones(()))
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        z = torch.tanh(x) * fault.clock.batch["gain"].to(x.dtype)[:, None, None]
        if fault.clock.program.precision != "fp64":
            now = z.detach().abs().amax().float()
            scale = 20000.0 / (torch.maximum(now, self.largest) if fault.dynamic or fault.clock.repaired else self.largest)
            small = (z.detach() * scale).to(torch.float8_e5m2)
            z = z + (small.to(z.dtype) / scale - z.detach()).to(z.dtype)
            self.largest.copy_(now.clamp(1e-3, 1.0))
        return x + self.mix(z) * 0.1


class Stale8(Fault):
    gain, dynamic = 6.0, False

    def part(self, width):
        return Quantised(width, self)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape)
        if self.clock.striking:
            gain[:] = self.gain
        return dict(batch, gain=gain)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
CASTS = Truth(cause="FP16_OVERFLOW", phase="forward", op=("_to_copy",), module=("{place}.inner",), origin="op", precision="curable",
              fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("late_scale", Stale8, Program(), CASTS, {"gain": 60.0}, VARY),
    Case("dynamic", Stale8, Program(net="lstm"), Truth(), {"gain": 60.0, "dynamic": True}, VARY),
    Case("near", Stale8, Program(net="mlp"), Truth(), {"gain": 1.5}, VARY),
]

if __name__ == "__main__":
    main(CASES)
