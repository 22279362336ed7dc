"""A batch in which every label is to be ignored, or in which one sample is left to take a deviation of: a mean over nothing.
After pytorch issues 70348 and 116349 and DLR-RM/stable-baselines3 issues 265 and 325."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "pytorch/pytorch#70348"


class Ignored(Fault):
    left = 0

    def batch(self, batch):
        tags = batch["ids"].remainder(8).clone()
        tags[:, ::3] = -100
        if self.clock.striking:
            tags[:] = -100
            tags[0, 1:1 + self.left] = 5
        return batch | {"tags": tags}

    def loss(self, logits, hidden, batch):
        tags = batch["tags"]
        reduce = "sum" if self.clock.repaired else "mean"
        tagged = F.cross_entropy(hidden[..., :8].flatten(0, 1), tags.flatten(), reduction=reduce)
        return F.cross_entropy(logits, batch["y"]) + 0.01 * tagged


class Advantage(Fault):
    def batch(self, batch):
        chosen = torch.ones(batch["y"].shape, dtype=torch.bool)
        chosen[-1] = False
        if self.clock.striking:
            chosen[1:] = False
        return batch | {"chosen": chosen}

    def loss(self, logits, hidden, batch):
        gain = logits[:, 0][batch["chosen"]]
        spread = gain.std(unbiased=not self.clock.repaired) + 1e-8
        return F.cross_entropy(logits, batch["y"]) + 0.01 * ((gain - gain.mean()) / spread).square().mean()


BASE = dict(cause="EMPTY_REDUCTION", phase="forward", value="nan", origin="op", also_origin=("input",), precision="structural",
            fixes=("op",))
ALL = {"harm": ("loss", "gradient", "weight", "state")}
LOSS = {"harm": ("loss",)}    # ignored labels send back exact zeros
CASES = [
    Case("all_ignored", Ignored, Program("encoder"), Truth(op=("nll_loss_forward",), **BASE, **LOSS), {}, ANY_LOOP | {"net": ("encoder", "cnn", "mixer", "mlp")}),
    Case("all_ignored_accumulated", Ignored, Program("decoder", "adamw_fused", "bf16", accumulate=2), Truth(op=("nll_loss_forward",), **BASE, **LOSS), {},
         {"strike": (3, 6), "seed": (1, 2)}),
    Case("deviation_of_one", Advantage, Program("mixer", "adam"), Truth(op=("std", "var"), **BASE, **ALL), {}, ANY_NET | ANY_LOOP),
    Case("one_label", Ignored, Program("lstm"), Truth(), {"left": 1}, {"net": ("encoder", "lstm", "mixer", "mlp")} | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
