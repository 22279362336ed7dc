"""A huge but finite gradient: its square overflows in the second moment, and the weight never moves again."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, Case, Program, Truth  # noqa: E402

SOURCE = "FeRx-NLME/ferx-core #1112, NVIDIA/apex #799"


class Moments(Fault):
    weight = 1e24

    def batch(self, batch):
        return dict(batch, weight=torch.tensor(self.weight if self.clock.striking else 1.0))

    def loss(self, logits, hidden, batch):
        return super().loss(logits, hidden, batch) * batch["weight"].to(logits.dtype)

    def gradients(self, net, optimizer):
        if self.clock.repaired:
            torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)


VARY = {**ANY_NET, **ANY_LOOP, "optimizer": ("adam", "adamw_foreach", "adamw_single"), "precision": ("fp32", "bf16"), "noise": (False,)}
SQUARE = Truth(cause="FP16_OVERFLOW", also=("NORM_OVERFLOW",), phase="optimizer", op=("addcmul_", "_foreach_addcmul_", "mul"), origin="op", precision="curable", value="+inf",
               fixes=("precision", "op"), harm=("state",))
CASES = [
    Case("squared", Moments, Program(), SQUARE, vary=VARY),
    Case("by_hand", Moments, Program(net="lstm", optimizer="hand"), SQUARE, vary={**VARY, "optimizer": ("hand",)}),
    Case("near", Moments, Program(net="mlp"), Truth(), {"weight": 1e14}, VARY),
]

if __name__ == "__main__":
    main(CASES)
