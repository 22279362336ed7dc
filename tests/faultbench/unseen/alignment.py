"""CTC with targets that no path through the frames can spell: too long, or with repeats that need a blank between.
After ypwhs/captcha_break issue 29 and SeanNaren/warp-ctc issue 29."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "ypwhs/captcha_break#29"


class Alignment(Fault):
    zero = False

    def batch(self, batch):
        size = batch["y"].shape[0]
        labels = torch.arange(20).remainder(7).add(1).repeat(size, 1)
        lengths = torch.full((size,), 6)
        if self.clock.striking:
            lengths[2] = self.length
            labels[2] = labels[2] if self.length > 16 else 3
        return batch | {"labels": labels, "lengths": lengths}

    def loss(self, logits, hidden, batch):
        frames = hidden[..., :8]
        frames = frames if frames.dtype == torch.float64 else frames.float()
        size = torch.full((frames.shape[0],), 16)
        spelt = F.ctc_loss(frames.log_softmax(-1).transpose(0, 1), batch["labels"], size, batch["lengths"],
                           zero_infinity=self.zero or self.clock.repaired)
        return F.cross_entropy(logits, batch["y"]) + 0.1 * spelt


TRUTH = Truth(cause="INFEASIBLE_TARGET", phase="forward", op=("_ctc_loss",), origin="op", also_origin=("input",),
              precision="structural", fixes=("op",), harm=("loss", "gradient", "weight", "state"), by="loss")
NETS = {"net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}
CASES = [
    Case("too_long", Alignment, Program("lstm", "sgd"), TRUTH, {"length": 18}, NETS | ANY_LOOP),
    Case("repeats", Alignment, Program("encoder", "adam", "autocast_bf16"), TRUTH, {"length": 12}, NETS | ANY_LOOP),
    Case("zero_infinity", Alignment, Program("lstm"), Truth(decoys=("_ctc_loss",)), {"length": 18, "zero": True}, NETS | ANY_LOOP),
    Case("just_fits", Alignment, Program("decoder"), Truth(decoys=("_ctc_loss",)), {"length": 8}, NETS | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
