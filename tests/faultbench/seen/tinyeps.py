"""An epsilon of 1e-8 in fp16 is zero; a feature vector of zeros is then divided by nothing."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "chainer/chainer #6299, VeriSilicon/TIM-VX #589, tensorflow/tensorflow #21929"


class Unit(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        eps = 1e-3 if fault.clock.repaired else fault.eps
        z = torch.tanh(x) * fault.clock.batch["keep"].to(x.dtype)[:, None, None]
        if fault.kind == "norm":
            z = z / ((z * z).sum(-1, keepdim=True) + eps)
        elif fault.kind == "rsqrt":
            z = z * ((z * z).mean(-1, keepdim=True) + eps).rsqrt()
        return x + z * self.scale * 0.1


class TinyEps(Fault):
    kind, eps = "norm", 1e-8

    def part(self, width):
        return Unit(width, self)

    def batch(self, batch):
        keep = torch.ones(batch["y"].shape)
        if self.clock.striking:
            keep[2] = 0.0  # a blank sample
        return dict(batch, keep=keep)


VARY = {**ANY_LOOP, **ANY_PLACE, "net": ("encoder", "lstm", "mlp"), "optimizer": ("sgd", "adam", "adamw_single"), "accumulate": (1,)}
EPS = Truth(cause="EPS_UNDERFLOW", phase="forward", op=("div",), module=("{place}.inner",), origin="op", precision="curable", value="nan",
            fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("norm", TinyEps, Program(net="lstm", precision="fp16"), EPS, vary=VARY),
    Case("rsqrt", TinyEps, Program(net="mlp", precision="fp16"), Truth(**{**vars(EPS), "op": ("rsqrt",), "value": "+inf"}), {"kind": "rsqrt"}, VARY),
    Case("larger", TinyEps, Program(net="lstm", precision="fp16"), Truth(), {"kind": "rsqrt", "eps": 1e-3}, VARY),
    Case("single", TinyEps, Program(net="cnn"), Truth(), {"kind": "rsqrt"}, {**VARY, "net": ("cnn", "unet", "decoder")}),
]

if __name__ == "__main__":
    main(CASES)
