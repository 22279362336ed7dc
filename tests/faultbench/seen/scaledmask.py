"""A mask of the smallest number is multiplied after it was put in: by a temperature, a layer's scale, or by what was no mask of ones and zeros."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "dphnAI/sonar #814, EleutherAI/gpt-neox #25, hiyouga/LlamaFactory #7308"
LOWEST = torch.finfo(torch.float32).min


class Masked(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / math.sqrt(x.shape[-1])
        keep = self.fault.clock.batch["keep"][:, None, :]
        return x + self.fault.mask(scores, keep).softmax(-1) @ v


class ScaledMask(Fault):
    whole = True

    def part(self, width):
        return Masked(width, self)

    def batch(self, batch):
        keep = torch.ones(batch["ids"].shape, dtype=torch.long)
        keep[1, 10:] = 0
        if self.clock.striking and self.whole:
            keep[2] = 0
        return dict(batch, keep=keep)


class Sharpened(ScaledMask):
    """Scores are masked with the smallest number of their format, and then divided by a temperature below one."""

    temperature = 0.5

    def mask(self, scores, keep):
        low = torch.finfo(scores.dtype).min
        if self.clock.repaired:
            return (scores / self.temperature).masked_fill(keep == 0, low)
        return scores.masked_fill(keep == 0, low) / self.temperature


class Layered(ScaledMask):
    """The mask is added first; the scale of the layer (its number) comes after."""

    def mask(self, scores, keep):
        low = torch.zeros(keep.shape, dtype=scores.dtype).masked_fill(keep == 0, LOWEST)
        return scores * 4.0 + low if self.clock.repaired else (scores + low) * 4.0


class Packed(ScaledMask):
    """(1 - mask) times the smallest number, where the mask numbers the packed sequences: from the third on it is +inf."""

    most = 3

    def batch(self, batch):
        keep = torch.ones(batch["ids"].shape, dtype=torch.long)
        keep[1, 10:] = 0
        if self.clock.striking:
            keep[2, 4:9], keep[2, 9:14], keep[2, 14:] = min(2, self.most), self.most, 0
        return dict(batch, keep=keep)

    def mask(self, scores, keep):
        keep = keep.clamp(max=1) if self.clock.repaired else keep
        return scores + (1.0 - keep.to(scores.dtype)) * torch.tensor(LOWEST, dtype=scores.dtype)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, **ANY_OPTIMIZER}
ROW = {"cause": "MASK_OVERFLOW", "phase": "forward", "module": ("{place}.inner",), "origin": "op", "harm": ("loss", "gradient", "weight", "state")}
CURED = {**ROW, "op": ("mul",), "precision": "curable", "fixes": ("precision", "op")}
CASES = [
    # The number is the smallest of whatever format there is: a wider format does not help.
    Case("temperature", Sharpened, Program(net="lstm"), Truth(**ROW, op=("div",), precision="structural", value="-inf", fixes=("op", "data")),
         vary={**VARY, "precision": ("fp32", "bf16")}, source="dphnAI/sonar #814"),
    Case("layer_scale", Layered, Program(net="encoder", optimizer="adamw_fused"), Truth(**CURED, value="-inf"), vary=VARY),
    Case("packed", Packed, Program(net="decoder"), Truth(**CURED, value="+inf"), vary=VARY, source="hiyouga/LlamaFactory #7308"),
    Case("temperature_partly", Sharpened, Program(net="cnn"), Truth(decoys=("div",)), {"whole": False}, {**VARY, "precision": ("fp32", "bf16")}),
    Case("warm", Sharpened, Program(net="mlp"), Truth(), {"temperature": 2.0}, {**VARY, "precision": ("fp32", "bf16")}),
]

if __name__ == "__main__":
    main(CASES)
