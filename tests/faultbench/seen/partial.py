"""Memory from empty is filled for as many rows as the batch has, and read whole."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from memory import fresh  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "openai/CLIP #15, huggingface/transformers #30953, pytorch/ao #1157, pytorch/helion #1672"


class Scaled(torch.autograd.Function):
    """y = x * factor, with a backward that fills in the gradient of the samples that are in use."""

    @staticmethod
    def forward(ctx, x, used, loud):
        ctx.used, ctx.loud = used, loud
        return x * 1.5

    @staticmethod
    def backward(ctx, grad):
        out = fresh(grad.shape, grad, ctx.loud)
        out[: ctx.used] = grad[: ctx.used] * 1.5
        return out, None, None


class Padded(nn.Module):
    """Tokens are copied into a longer memory, which is then averaged whole."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        loud = fault.clock.striking and not fault.clock.repaired
        if fault.kind == "backward":
            used = len(x) - 1 if loud else len(x)
            return x + Scaled.apply(self.mix(x), used, loud)
        memory = fresh((x.shape[0], x.shape[1] + 4, x.shape[2]), x, loud)
        y = torch.tanh(self.mix(x))
        memory[:, : x.shape[1]] = y
        if fault.kind == "full":
            memory[:, x.shape[1] :] = 0.0
        return x + memory.mean(1, keepdim=True)


class Partial(Fault):
    kind = "forward"

    def part(self, width):
        return Padded(width, self)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
EMPTY = Truth(cause="UNINITIALIZED", phase="forward", op=("new_empty", "mean", "empty", "copy_"), module=("{place}.inner",), origin="op", also_origin=("input",),
              precision="not_a_precision_matter", fixes=("op",), harm=("loss", "gradient", "weight", "state"), by="empty")
BACK = {**vars(EMPTY), "phase": "backward", "op": ("new_empty", "empty", "mul", "mm", "sum", "add", "copy_", "new_empty_strided"), "module": (), "harm": ("gradient", "weight", "state")}
CASES = [
    Case("memory", Partial, Program(), EMPTY, vary=VARY),
    Case("gradient", Partial, Program(net="lstm"), Truth(**BACK), {"kind": "backward"}, {**VARY, "place": ("middle", "late")}),
    Case("filled", Partial, Program(net="mlp"), Truth(decoys=("new_empty",)), {"kind": "full"}, VARY),
]

if __name__ == "__main__":
    main(CASES)
