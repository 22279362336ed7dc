"""A transcript with repeated letters that needs more frames than there are."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "open-mmlab/mmocr #159, ypwhs/captcha_break #29, SeanNaren/warp-ctc #29"


class Ctc(Fault):
    zero, repeated, reduction = False, True, "mean"

    def prepare(self, net):
        self.letters = nn.Linear(32, 6).to(next(net.parameters()).dtype)
        net.add_module("letters", self.letters)

    def batch(self, batch):
        size = len(batch["y"])
        transcript = torch.randint(1, 6, (size, 9), generator=torch.Generator().manual_seed(self.clock.step))
        transcript[:, 1::2] = transcript[:, 1::2] % 5 + 1
        for i in range(1, 9):  # no letter twice in a row
            same = transcript[:, i] == transcript[:, i - 1]
            transcript[same, i] = transcript[same, i] % 5 + 1
        if self.clock.striking and self.repeated:
            transcript[2] = 3  # 9 letters and 8 blanks between them: 17 frames, but there are 16
        return dict(batch, transcript=transcript)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        hidden = hidden.flatten(2).transpose(1, 2) if hidden.dim() == 4 else hidden
        log = self.letters(hidden).float().log_softmax(-1) if hidden.dtype != torch.float64 else self.letters(hidden).log_softmax(-1)
        size, frames = log.shape[:2]
        lengths = torch.full((size,), 9)
        if self.clock.repaired:
            lengths[2] = 5
        ctc = F.ctc_loss(log.transpose(0, 1), batch["transcript"], torch.full((size,), frames), lengths, zero_infinity=self.zero, reduction=self.reduction)
        return loss + 0.05 * (ctc if self.reduction == "mean" else ctc / 9 / size)


VARY = {**ANY_LOOP, **ANY_OPTIMIZER, "net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp"), "precision": ("fp32", "bf16")}
LONG = Truth(cause="INFEASIBLE_TARGET", phase="forward", op=("_ctc_loss",), module=("",), origin="op", also_origin=("input",), precision="structural",
             fixes=("data", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("repeats", Ctc, Program(), LONG, vary=VARY),
    Case("summed", Ctc, Program(net="lstm"), LONG, {"reduction": "sum"}, VARY),
    Case("zero_infinity", Ctc, Program(net="mlp"), Truth(decoys=("_ctc_loss",)), {"zero": True}, VARY),
    Case("fits", Ctc, Program(net="cnn"), Truth(), {"repeated": False}, VARY),
]

if __name__ == "__main__":
    main(CASES)
