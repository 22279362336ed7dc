"""Gumbel noise from a draw that is exactly zero (or one)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #22442, #20179, #103459"


class Gate(nn.Module):
    """Features are weighed by a softmax with noise that the loader has drawn."""

    def __init__(self, width, fault):
        super().__init__()
        self.logits = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        draw = self.fault.clock.batch["draw"].to(x.dtype)
        if self.fault.clock.repaired:
            draw = draw.clamp(1e-3, 0.99)
        gumbel = -draw.log() if self.fault.exponential else -(-draw.log()).log()
        return x + (self.logits(x) + gumbel).softmax(-1)


class Gumbel(Fault):
    exponential, value = True, 0.0

    def part(self, width):
        return Gate(width, self)

    def batch(self, batch):
        draw = torch.rand(batch["y"].shape[0], 16, 32, generator=torch.Generator().manual_seed(self.clock.step)).clamp(1e-3, 0.99)
        if self.clock.striking:
            draw[1, 3, 5] = self.value
        return dict(batch, draw=draw)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "autocast_bf16")}
# A part at this place sees 16 tokens in these nets alone.
WHOLE = {**VARY, "net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}
LOG = Truth(cause="LOG_ZERO", phase="forward", op=("log",), module=("{place}.inner",), origin="op", also_origin=("input",),
            precision="structural", value="-inf", fixes=("data", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("exponential", Gumbel, Program(), LOG, vary=WHOLE),
    Case("uniform_one", Gumbel, Program(net="lstm"), LOG, {"exponential": False, "value": 1.0}, WHOLE),
    Case("uniform_zero", Gumbel, Program(net="mlp"), Truth(decoys=("log",)), {"exponential": False, "value": 0.0}, WHOLE),
    Case("near", Gumbel, Program(net="cnn"), Truth(), {"value": 1e-37}, WHOLE),
]

if __name__ == "__main__":
    main(CASES)
