"""A memory bank made with empty() is read beyond the rows that were written. After tail-unica/hopwise issue 271
and vllm-project/vllm issue 940; a backward that fills only part of its output is the same fault. Fresh memory is made to show."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "tail-unica/hopwise#271"


class Bank(nn.Module):
    def __init__(self, clock, width):
        super().__init__()
        self.clock = clock
        rows = torch.zeros if clock.repaired else torch.empty
        self.register_buffer("rows", rows(64, width))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        used = min(64, 4 * (self.clock.step + 1))
        with torch.no_grad():
            self.rows[used - 4:used] = x[:4, 0]
        asked = self.clock.batch["rows"]
        return x + 0.1 * self.mix(self.rows.index_select(0, asked)).mean(0)


class Partial(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kept, repaired):
        ctx.kept, ctx.repaired = kept, repaired
        return x[:, :kept].clone()

    @staticmethod
    def backward(ctx, grad):
        shape = (grad.shape[0], 16, grad.shape[2])
        out = grad.new_zeros(shape) if ctx.repaired else grad.new_empty(shape)
        out[:, :ctx.kept] = grad
        return out, None, None


class Truncate(nn.Module):
    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def forward(self, x):
        kept = self.clock.batch["kept"]
        return x + Partial.apply(x, kept, self.clock.repaired).mean(1, keepdim=True)


class Unwritten(Fault):
    kind = "bank"

    def part(self, width):
        torch.use_deterministic_algorithms(True, warn_only=True)   # fresh memory holds NaN
        return Bank(self.clock, width) if self.kind == "bank" else Truncate(self.clock)

    def batch(self, batch):
        rows = torch.arange(4)
        if self.clock.striking and self.kind == "bank" and self.reach:
            rows = torch.arange(6) + 4 * self.clock.step + 2
        return batch | {"rows": rows, "kept": 12 if self.clock.striking and self.reach else 16}


BASE = dict(cause="UNINITIALIZED", precision="not_a_precision_matter", fixes=("op",))
BANK = Truth(phase="forward", op=("index_select",), module=("{place}.inner",), origin="buffer", by="read", tolerated=("buffer",),
             harm=("loss", "gradient", "weight", "state", "buffer"), **BASE)
PART = Truth(phase="backward", op=("new_empty", "empty", "add"), decoys=("new_empty_strided",), origin="op", also_origin=("input",), by="empty",
             harm=("gradient", "weight", "state"), **BASE)
CASES = [
    Case("bank", Unwritten, Program("encoder"), BANK, {"reach": True}, ANY_NET | {"accumulate": (1,), "strike": (3, 5, 8)} | ANY_PLACE),
    Case("backward", Unwritten, Program("mixer", "adam"), PART, {"kind": "backward", "reach": True},
         ANY_LOOP | {"net": ("encoder", "decoder", "mixer", "mlp")}),
    Case("filled_in_time", Unwritten, Program("mlp", "hand"), Truth(), {"kind": "backward", "reach": False}, ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
