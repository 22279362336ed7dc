"""Missing values of a table come as NaN in the features, or as an infinity in a target that the loss reads.
After pytorch-tabular issue 173 and Nixtla/neuralforecast issue 186."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch-tabular/pytorch_tabular#173"


class Missing(Fault):
    kind = "x"
    bad = float("nan")

    def batch(self, batch):
        wanted = batch["x"][:, 0, :4].clone()
        if self.clock.striking and not self.clock.repaired:
            if self.kind == "x":
                batch["x"][3, 7, 2] = self.bad
            else:
                wanted[1, 2] = self.bad
        if self.kind == "replaced":
            wanted[0, :2] = float("nan")
        return batch | {"wanted": wanted}

    def loss(self, logits, hidden, batch):
        wanted = batch["wanted"]
        if self.kind == "replaced":
            wanted = torch.where(torch.isnan(wanted), torch.zeros_like(wanted), wanted)
        return F.cross_entropy(logits, batch["y"]) + 0.01 * F.mse_loss(hidden[:, 0, :4], wanted)


BASE = dict(cause="BAD_DATA", phase="input", origin="input", by="read", precision="not_a_precision_matter", fixes=("data",),
            harm=("loss", "gradient", "weight", "state"))
FIRST = Truth(op=("addmm", "mm", "bmm", "convolution", "clone", "_unsafe_view", "_to_copy", "mkldnn_rnn_layer"), **BASE)
TARGET = Truth(op=("mse_loss", "sub", "_to_copy"), **BASE)
SEEN = {"net": ("encoder", "decoder", "mixer", "mlp", "lstm", "unet")}
CASES = [
    Case("feature", Missing, Program("mlp", "adam"), FIRST, {}, SEEN | ANY_LOOP),
    Case("feature_autocast", Missing, Program("encoder", "adamw_foreach", "autocast_bf16"), FIRST, {}, ANY_LOOP),
    Case("infinite_target", Missing, Program("decoder"), TARGET, {"kind": "wanted", "bad": float("inf")}, ANY_NET | ANY_LOOP),
    Case("replaced_before_use", Missing, Program("unet", "hand"), Truth(), {"kind": "replaced"}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
