"""Importance weights make a step with large, finite gradients; the norm for clipping overflows and the clip wipes them out.
After facebookresearch/fairscale pull request 263 and tracel-ai/burn issue 5699."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "facebookresearch/fairscale#263"


class Importance(Fault):
    by_hand = False
    reach = 1.0

    def batch(self, batch):
        weight = torch.ones(batch["y"].shape)
        if self.clock.striking:
            weight[3] = self.reach
        return batch | {"weight": weight}

    def loss(self, logits, hidden, batch):
        return (F.cross_entropy(logits.to(batch["weight"].dtype) if not self.by_hand else logits, batch["y"], reduction="none")
                * batch["weight"].to(logits.dtype)).mean()

    def gradients(self, net, optimizer):
        if self.by_hand:
            grads = [p.grad for p in net.parameters() if p.grad is not None]
            if self.clock.repaired:
                total = sum(g.float().square().sum() for g in grads).sqrt()
            else:
                total = sum(g.square().sum() for g in grads).sqrt()
            scale = (1.0 / (total + 1e-6)).clamp(max=1.0)
            for g in grads:
                g.mul_(scale.to(g.dtype))


BASE = dict(cause="NORM_OVERFLOW", phase="optimizer", origin="op", value="+inf", precision="curable", harm=("wrong",))
HAND = Truth(op=("pow", "square", "sum"), also=("FP16_OVERFLOW",), fixes=("precision", "op"), **BASE)
NORM = Truth(op=("_foreach_norm", "linalg_vector_norm"), fixes=("precision",), **BASE)
CASES = [
    Case("by_hand", Importance, Program("mlp", "sgd", "fp16", lr=1e-4), HAND, {"by_hand": True, "reach": 1e4},
         {"seed": (1, 2), "strike": (3, 6)}),
    Case("library", Importance, Program("encoder", "sgd", "fp32", clip=1.0), NORM, {"reach": 1e22},
         ANY_LOOP | {"net": ("encoder", "unet", "mlp", "mixer")}),
    Case("library_adam", Importance, Program("cnn", "adam", "fp32", clip=0.5), NORM, {"reach": 1e24}, ANY_LOOP),
    Case("large_but_fits", Importance, Program("decoder", "sgd", "fp32", clip=1.0), Truth(), {"reach": 1e12}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
