"""A discriminator that is too sure: log of one minus a saturated sigmoid. After callummcdougall/ARENA_3.0 pull request 369 and
soumith/ganhacks issue 36."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "callummcdougall/ARENA_3.0#369"


class Certain(Fault):
    def batch(self, batch):
        return batch | {"offset": torch.tensor(self.reach if self.clock.striking else 0.0)}

    def loss(self, logits, hidden, batch):
        score = logits[:, 0].tanh() + batch["offset"].to(logits.dtype)
        if self.clock.repaired:
            fake = F.softplus(score)
        else:
            fake = -(1 - score.sigmoid()).log()
        return F.cross_entropy(logits, batch["y"]) + 0.01 * fake.mean()


BASE = dict(cause="LOG_ZERO", phase="forward", op=("log",), origin="op", value="-inf", harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("fp32", Certain, Program("cnn", "adam"), Truth(precision="curable", fixes=("precision", "op"), **BASE), {"reach": 24.0}, ANY_NET | ANY_LOOP),
    Case("bf16", Certain, Program("encoder", "adamw_foreach", "bf16"), Truth(precision="curable", fixes=("precision", "op"), **BASE),
         {"reach": 12.0}, {"net": ("encoder", "mlp", "mixer")} | ANY_LOOP),
    Case("any_format", Certain, Program("unet", "adamw_fused"), Truth(precision="structural", fixes=("op",), **BASE), {"reach": 60.0}, ANY_NET | ANY_LOOP),
    Case("nearly", Certain, Program("mlp", "adam"), Truth(), {"reach": 8.0}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
