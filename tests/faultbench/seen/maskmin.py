"""A mask constant that leaves the range of its format when it is added twice, added to a score, or cast."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "huggingface/transformers #17306, #27114, NVIDIA-NeMo/Automodel #2658"


class Masked(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / math.sqrt(x.shape[-1])
        pad = self.fault.clock.batch["pad"][:, None, :]
        return x + self.fault.mask(scores, pad).softmax(-1) @ v


class MaskMin(Fault):
    whole = True

    def part(self, width):
        return Masked(width, self)

    def batch(self, batch):
        pad = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        pad[1, 10:] = True
        if self.clock.striking and self.whole:
            pad[2] = True
        return dict(batch, pad=pad)


class Twice(MaskMin):
    """The model masks its padding, and each layer does so again."""

    def mask(self, scores, pad):
        low = torch.zeros(pad.shape, dtype=scores.dtype).masked_fill(pad, torch.finfo(scores.dtype).min)
        scores = scores + low
        return scores if self.clock.repaired else scores + low


class Scored(MaskMin):
    """The smallest fp16 number and a score below -16: the sum is -inf."""

    def mask(self, scores, pad):
        low = torch.zeros(pad.shape, dtype=scores.dtype).masked_fill(pad, -1e4 if self.clock.repaired else torch.finfo(torch.float16).min)
        return scores * 0.1 - self.distance + low


class Cast(MaskMin):
    """A mask of -1e9 made in fp32 and cast to the format of the scores."""

    def mask(self, scores, pad):
        low = torch.zeros(pad.shape).masked_fill(pad, -1e4 if self.clock.repaired else -1e9)
        return scores + low.to(scores.dtype)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE}
HALF = {**VARY, "net": ("encoder", "lstm", "mlp", "unet"), "optimizer": ("sgd", "adam", "adamw_single"), "accumulate": (1,)}
ROW = Truth(cause="MASK_OVERFLOW", phase="forward", op=("add",), module=("{place}.inner",), origin="op", precision="curable", value="-inf",
            fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("twice", Twice, Program(), ROW, vary={**VARY, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}),
    Case("scored", Scored, Program(net="mlp", precision="fp16"), ROW, {"distance": 64.0}, HALF),
    Case("cast", Cast, Program(net="lstm", precision="fp16"), Truth(**{**vars(ROW), "op": ("_to_copy",)}), vary=HALF),
    Case("twice_partly", Twice, Program(net="decoder"), Truth(decoys=("add",)), {"whole": False},
         {**VARY, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}),
    Case("scored_near", Scored, Program(net="mlp", precision="fp16"), Truth(), {"distance": 4.0}, HALF),
]

if __name__ == "__main__":
    main(CASES)
