"""A run goes on from a checkpoint with something bad in it: an infinity in the averaged teacher, a negative variance, a negative second moment."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "ultralytics/ultralytics #24307, facebookresearch/detectron2 #2413, bitsandbytes-foundation/bitsandbytes #1382"


class Taught(nn.Module):
    """A layer, a moving average of it that teaches it, and a batch norm whose statistics are fixed."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width).eval()
        self.register_buffer("teacher_weight", self.mix.weight.detach().clone())
        self.register_buffer("teacher_bias", self.mix.bias.detach().clone())
        self.fault, self.gap = fault, None

    def forward(self, x):
        y = self.mix(x)
        with torch.no_grad():
            goal = F.linear(x, self.teacher_weight, self.teacher_bias)
        self.gap = (y - goal).pow(2).mean()
        if self.fault.what == "variance":
            y = self.norm(y.transpose(1, 2)).transpose(1, 2)
        return x + torch.tanh(y)


class Teacher(Fault):
    what, value, cleaned = "teacher", math.inf, False

    def part(self, width):
        self.taught = Taught(width, self)
        return self.taught

    def loss(self, logits, hidden, batch):
        return super().loss(logits, hidden, batch) + 0.1 * self.taught.gap.to(logits.dtype)

    def between(self, net, optimizer):
        if self.clock.step != self.clock.program.strike or self.clock.control or self.clock.repaired:
            return
        part = self.taught
        with torch.no_grad():
            if self.what == "teacher":
                part.teacher_weight[2, 3] = self.value
                if self.cleaned:
                    part.teacher_weight.nan_to_num_(posinf=0.0)
            elif self.what == "variance":
                part.norm.running_var[4] = self.value
            else:
                state = optimizer.state[part.mix.weight]
                next(v for n, v in state.items() if n in ("exp_avg_sq", "v"))[2, 3] = self.value

    def after_step(self, net, optimizer):
        with torch.no_grad():
            self.taught.teacher_weight.lerp_(self.taught.mix.weight, 0.1)
            self.taught.teacher_bias.lerp_(self.taught.mix.bias, 0.1)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, "optimizer": ("sgd", "adam", "adamw_foreach", "adamw_fused", "adamw_single", "hand")}
MOMENTS = {**VARY, "optimizer": ("adam", "adamw_foreach", "adamw_fused", "adamw_single", "hand")}
BAD = {"cause": "BAD_STATE", "fixes": ("data",)}
ALL = ("loss", "gradient", "weight", "state")
NEGATIVE = {**BAD, "also": ("DOMAIN",), "also_origin": ("op",), "precision": "structural", "value": "nan"}
CASES = [
    Case("teacher", Teacher, Program(net="encoder", optimizer="adam"),
         Truth(**BAD, phase="input", op=("addmm", "mm", "linear", "matmul", "bmm", "t"), module=("{place}.inner",), origin="buffer", precision="not_a_precision_matter",
               harm=(*ALL, "buffer"), by="read"), vary={**VARY, "precision": ("fp32", "bf16")}),
    Case("variance", Teacher, Program(net="mlp", optimizer="sgd"),
         Truth(**NEGATIVE, phase="forward", op=("native_batch_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update", "batch_norm", "cudnn_batch_norm"),
               module=("{place}.inner.norm",), origin="buffer", harm=(*ALL, "buffer")), {"what": "variance", "value": -0.5}, VARY, "facebookresearch/detectron2 #2413"),
    Case("second_moment", Teacher, Program(net="decoder", optimizer="adamw_single"),
         Truth(**NEGATIVE, phase="optimizer", op=("sqrt", "_foreach_sqrt", "_fused_adamw_"), origin="optimizer_state", harm=("weight", "buffer")),
         {"what": "second", "value": -0.5}, MOMENTS, "bitsandbytes-foundation/bitsandbytes #1382"),
    Case("cleaned", Teacher, Program(net="lstm"), Truth(), {"cleaned": True}, {**VARY, "precision": ("fp32", "bf16")}),
    Case("teacher_far", Teacher, Program(net="unet", optimizer="adam"), Truth(), {"value": 30.0}, {**VARY, "precision": ("fp32", "bf16")}),
    Case("large_moment", Teacher, Program(net="cnn", optimizer="adam"), Truth(), {"what": "second", "value": 1e9}, MOMENTS),
]

if __name__ == "__main__":
    main(CASES)
