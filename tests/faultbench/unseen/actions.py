"""Illegal actions are masked with -inf on purpose; what is made of the log-probabilities then is zero times infinity, or a logit
loss of an infinite logit. After pytorch issue 40553 and huggingface/trl issue 7221."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#40553"


class Actions(Fault):
    kind = "entropy"
    always = False

    def batch(self, batch):
        illegal = torch.zeros(batch["y"].shape[0], 8, dtype=torch.bool)
        if self.clock.striking or self.always:
            illegal[1, 5:] = True
        return batch | {"illegal": illegal}

    def loss(self, logits, hidden, batch):
        floor = torch.finfo(logits.dtype).min / 4 if self.clock.repaired else float("-inf")
        masked = logits.masked_fill(batch["illegal"], floor)
        if self.kind == "bce":
            if self.clock.repaired:
                masked = masked.clamp(min=-1e4)
            extra = F.binary_cross_entropy_with_logits(masked, F.one_hot(batch["y"], 8).to(masked.dtype) * ~batch["illegal"])
        elif self.kind == "probabilities":
            extra = masked.softmax(-1).square().sum(-1).mean()
        else:
            logp = masked.log_softmax(-1)
            extra = (logp.exp() * logp).sum(-1).mean()
        return F.cross_entropy(logits, batch["y"]) + 0.01 * extra


BASE = dict(phase="forward", origin="op", value="nan", precision="structural", fixes=("op",), by="nan_birth")
ENTROPY = Truth(cause="ZERO_TIMES_INF", op=("mul",), decoys=("masked_fill",),
                harm=("loss", "gradient", "weight", "state"), **BASE)
LOGIT = Truth(cause="INF_LOGIT", op=("binary_cross_entropy_with_logits",), decoys=("masked_fill",),
              harm=("loss",), note="the gradient, sigmoid minus target, is finite", **BASE)
CASES = [
    Case("entropy", Actions, Program("mlp", "adam"), ENTROPY, {}, ANY_NET | ANY_LOOP),
    Case("entropy_bf16", Actions, Program("encoder", "adamw_foreach", "autocast_bf16"), ENTROPY, {}, ANY_NET | ANY_LOOP),
    Case("logit_loss", Actions, Program("unet"), LOGIT, {"kind": "bce"}, ANY_NET | ANY_LOOP),
    Case("probabilities", Actions, Program("mixer"), Truth(decoys=("masked_fill",)), {"kind": "probabilities", "always": True}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
