"""Formulas with two ranges: torch.where takes the right one, and the other one, undefined there, sends NaN back."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "WU-CVGL/BAD-NeRF #2, #5, Ciela-Institute/caustics #83, kornia/kornia #868, #900"


class Ranges(nn.Module):
    def __init__(self, width, fault):
        super().__init__()
        self.lift = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        gain = fault.clock.batch["gain"].to(x.dtype)[:, None, None]
        z = 0.5 + 0.4 * torch.tanh(self.lift(x))
        safe = fault.safe or fault.clock.repaired
        if fault.kind == "slerp":
            # Half way between two directions; where they are the same, the straight line is taken.
            cosine = 1 - gain * z
            same = cosine > 0.9995
            angle = torch.acos(torch.where(same, torch.full_like(cosine, 0.5), cosine) if safe else cosine)
            y = torch.where(same, 0.5 + 0 * cosine, torch.sin(0.5 * angle) / torch.sin(angle))
        elif fault.kind == "profile":
            # A halo's profile: acos(1/r) outside of its radius, a series inside.
            r = gain + 0.5 * z
            outside = r > 1
            inverse = 1 / (torch.where(outside, r, torch.full_like(r, 2.0)) if safe else r)
            y = torch.where(outside, torch.acos(inverse), 0.1 * (r - 1))
        else:
            # The lightness of a colour: a cube root, and a straight line near black.
            light = gain * z
            bright = light > 0.008856
            root = torch.pow(light.clamp(min=0.008856) if safe else light, 1 / 3)
            y = torch.where(bright, root, 7.787 * light + 16 / 116)
        return x + 0.1 * torch.tanh(y)


class Branches(Fault):
    kind, usual, gain, safe = "slerp", 0.9, 0.0, False

    def part(self, width):
        return Ranges(width, self)

    def batch(self, batch):
        gain = torch.full(batch["y"].shape, self.usual)
        if self.clock.striking:
            gain[1] = self.gain
        return dict(batch, gain=gain)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE}
BOTH = {**VARY, "precision": ("fp32", "bf16")}
BRANCH = {"cause": "UNSELECTED_BRANCH", "phase": "backward", "module": ("{place}.inner",), "origin": "op", "precision": "structural", "value": "nan",
          "fixes": ("op",), "harm": ("gradient", "weight", "state"), "by": "nan_birth"}
CASES = [
    Case("slerp", Branches, Program(net="mixer", optimizer="adamw_single"), Truth(**BRANCH, op=("div",), decoys=("forward:div",)), vary=VARY),
    Case("profile", Branches, Program(net="unet", optimizer="adam"), Truth(**BRANCH, op=("rsqrt", "mul"), decoys=("forward:acos",)),
         {"kind": "profile", "usual": 1.2, "gain": 0.3}, BOTH, "Ciela-Institute/caustics #83"),
    Case("lightness", Branches, Program(net="cnn", optimizer="sgd"),
         Truth(**{**BRANCH, "cause": "SINGULAR_GRAD", "value": "", "by": "birth"}, op=("pow",)),
         {"kind": "lab", "usual": 1.0}, BOTH, "kornia/kornia #868"),
    Case("slerp_near", Branches, Program(net="lstm"), Truth(), {"gain": 1e-4}, VARY),
    Case("lightness_clamped", Branches, Program(net="decoder"), Truth(), {"kind": "lab", "usual": 1.0, "safe": True}, BOTH, "kornia/kornia #900"),
]

if __name__ == "__main__":
    main(CASES)
