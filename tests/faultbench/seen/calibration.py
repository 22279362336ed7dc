"""A loss scale that overflows and halves is no fault; running statistics that keep what the skipped step saw are."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/pytorch #88474, #115500, #96798"


class Normed(nn.Module):
    """A projection in the format of autocast and a batch norm that keeps statistics for evaluation alone."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        with torch.no_grad():
            self.mix.weight.abs_().add_(0.2)
        self.fault = fault

    def forward(self, x):
        gain = self.fault.clock.batch["gain"]
        z = torch.sigmoid(x) * (gain.clamp(max=1e3) if self.fault.clock.repaired else gain)[:, None, None]
        y = self.mix(z)
        return x + 0.1 * torch.tanh(self.norm(y.to(self.norm.weight.dtype).transpose(1, 2)).transpose(1, 2))


class Calibration(Fault):
    gain, start = 60000.0, 2.0**8

    def part(self, width):
        return Normed(width, self)

    def scaler(self):
        return torch.amp.GradScaler("cpu", init_scale=2.0**8 if self.clock.control else self.start)

    def batch(self, batch):
        gain = torch.ones(batch["y"].shape)
        if self.clock.striking:
            gain[1] = self.gain
        return dict(batch, gain=gain)


VARY = {**ANY_LOOP, **ANY_PLACE, "net": ("encoder", "lstm", "mixer", "unet", "mlp"), "optimizer": ("sgd", "adam", "adamw_foreach", "adamw_single")}
KEPT = Truth(cause="FP16_OVERFLOW", phase="forward", op=("addmm", "linear", "mm", "matmul"), module=("{place}.inner.mix",), origin="op",
             precision="curable", value="+inf", fixes=("precision", "op"), harm=("loss", "gradient", "buffer"))
CASES = [
    Case("kept", Calibration, Program(precision="autocast_fp16", net="lstm"), KEPT, vary=VARY),
    Case("halving", Calibration, Program(precision="autocast_fp16", net="mlp", after=8), Truth(), {"gain": 1.0, "start": 2.0**24},
         {**VARY, "net": ("encoder", "mlp", "lstm")}),
    Case("near", Calibration, Program(precision="autocast_fp16", net="mlp"), Truth(), {"gain": 3000.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
