"""A wide feed-forward layer whose output passes the end of fp16 for one loud sample."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "huggingface/transformers #5651, #9295"


class Wide(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.wi, self.wo = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        with torch.no_grad():
            self.wo.weight.fill_(0.04)
        self.fault = fault

    def forward(self, x):
        h = (torch.relu(self.wi(torch.tanh(x))) + 0.5).clamp(max=1.0)
        h = h * self.fault.clock.batch["gain"].to(h.dtype)[:, None, None]
        y = self.wo(h.clamp(max=1e3) if self.fault.clock.repaired else h)
        if self.fault.residual:
            y = y + y
        return x + 1e-4 * y


class FeedForward(Fault):
    gain, residual = 40000.0, False

    def part(self, width):
        return Wide(width, self)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape)
        if self.clock.striking:
            gain[3] = self.gain
        return dict(batch, gain=gain)


VARY = {**ANY_LOOP, **ANY_PLACE, "net": ("encoder", "lstm", "mixer", "unet", "mlp"), "accumulate": (1,)}
FP16 = {**VARY, "optimizer": ("sgd", "adam", "adamw_single")}
AMP = {**VARY, "optimizer": ("sgd", "adam", "adamw_foreach", "adamw_single")}
OVER = Truth(cause="FP16_OVERFLOW", phase="forward", op=("addmm", "bmm", "mm", "linear", "matmul"), module=("{place}.inner.wo",), origin="op",
             precision="curable", value="+inf", fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("half", FeedForward, Program(precision="fp16", net="mlp"), OVER, vary=FP16),
    Case("autocast", FeedForward, Program(precision="autocast_fp16"), Truth(**{**vars(OVER), "harm": ("loss", "gradient")}), vary=AMP),
    Case("sum", FeedForward, Program(precision="fp16", net="lstm"), Truth(**{**vars(OVER), "op": ("add",), "module": ("{place}.inner",)}),
         {"gain": 12600.0, "residual": True}, {**FP16, "noise": (False,)}),
    Case("near", FeedForward, Program(precision="fp16", net="mlp"), Truth(), {"gain": 9000.0}, FP16),
]

if __name__ == "__main__":
    main(CASES)
