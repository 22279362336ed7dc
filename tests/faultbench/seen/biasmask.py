"""A mask of the smallest number meets something of its own sign, a position bias, or a narrower format that autocast chose."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "huggingface/transformers #18185, google/flax #982, espnet/espnet #4584, NVIDIA/apex #93"


class Distant(nn.Module):
    """Attention to an earlier segment with a bias that falls with the distance (ALiBi), in one sum with the mask."""

    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def forward(self, x):
        fault, tokens = self.fault, x.shape[1]
        q, k, v = self.qkv(x).chunk(3, -1)
        hidden = fault.clock.batch["hidden"][:, None, :]
        low = torch.zeros(hidden.shape, dtype=x.dtype).masked_fill(hidden, -1e4 if fault.clock.repaired else torch.finfo(torch.float16).min)
        places = torch.arange(tokens, dtype=x.dtype)
        bias = -fault.slope * (tokens + places[:, None] - places[None, :] + 1)
        scores = q @ k.transpose(1, 2) / math.sqrt(x.shape[-1]) + (bias + low)
        return x + scores.softmax(-1) @ v


class Fused(nn.Module):
    """The fp32 mask goes into baddbmm with the scores; autocast makes everything there bf16."""

    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        q, k, v = self.qkv(x).chunk(3, -1)
        hidden = fault.clock.batch["hidden"][:, None, :]
        low = torch.zeros(hidden.shape, dtype=self.qkv.weight.dtype).masked_fill(hidden, -1e4 if fault.clock.repaired else torch.finfo(torch.float32).min)
        scores = torch.baddbmm(low, q, k.transpose(1, 2), alpha=1 / math.sqrt(x.shape[-1]))
        return x + torch.bmm(scores.softmax(-1), v)


class BiasMask(Fault):
    kind, whole, slope = Distant, True, 20.0

    def part(self, width):
        return self.kind(width, self)

    def batch(self, batch):
        hidden = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        hidden[1, 10:] = True
        if self.clock.striking and self.whole:
            hidden[2] = True
        return dict(batch, hidden=hidden)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE}
HALF = {**VARY, "net": ("encoder", "lstm", "mlp", "unet"), "optimizer": ("sgd", "adam", "adamw_single"), "accumulate": (1,)}
AUTO = {**VARY, **ANY_OPTIMIZER}
ROW = Truth(cause="MASK_OVERFLOW", phase="forward", op=("add",), module=("{place}.inner",), origin="op", precision="curable", value="-inf",
            fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("alibi", BiasMask, Program(net="encoder", precision="fp16", optimizer="sgd"), ROW, vary=HALF),
    Case("autocast", BiasMask, Program(net="mixer", precision="autocast_bf16"), Truth(**{**vars(ROW), "op": ("_to_copy",)}), {"kind": Fused}, AUTO,
         "espnet/espnet #4584"),
    Case("alibi_gentle", BiasMask, Program(net="unet", precision="fp16", optimizer="adam"), Truth(), {"slope": 0.25}, HALF),
    Case("alibi_partly", BiasMask, Program(net="lstm", precision="fp16", optimizer="adam"), Truth(decoys=("add",)), {"whole": False}, HALF),
    Case("autocast_partly", BiasMask, Program(net="decoder", precision="autocast_bf16"), Truth(decoys=("_to_copy",)), {"kind": Fused, "whole": False}, AUTO),
]

if __name__ == "__main__":
    main(CASES)
