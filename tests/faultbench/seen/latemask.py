"""Bad elements are taken out after the function that made them: the loss is right, and the gradient of what was taken out is zero times infinity."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "MakazhanAlpamys/Soup #342, OpenRLHF/OpenRLHF #1293, pytorch/pytorch #94700, #152088, #26799"


class LateMask(Fault):
    kind, usual, odd, early = "ratio", 0.0, 200.0, False

    def batch(self, batch):
        data = torch.full(batch["y"].shape, self.usual)
        if self.clock.striking:
            data[1] = self.odd
        return dict(batch, data=data)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        lean = torch.tanh(hidden.mean((1, 2)))
        data = batch["data"].to(lean.dtype)
        early = self.early or self.clock.repaired
        if self.kind == "ratio":
            # Clipped policy loss: the log-ratio of padding is anything, and its ratio is clipped and masked after exp.
            change = lean + data
            ratio = torch.exp(change.clamp(-20, 20) if early else change)
            gain = torch.ones_like(data)
            objective = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
            return loss - 0.1 * (objective * (data < 50)).mean()
        if self.kind == "nan_to_num":
            # A hit rate per sample; a sample without anything to hit has 0/0.
            rate = (lean + 1.5) * data / (torch.where(data == 0, torch.ones_like(data), data) if early else data)
            return loss + 0.1 * torch.nan_to_num(rate, nan=0.0).mean()
        growth = (lean + 1.5) * data - 1
        known = data > 0
        logs = torch.log1p(growth[known]) if early else torch.log1p(growth)[known]
        return loss + 0.1 * logs.pow(2).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}
LATE = {"cause": "UNSELECTED_BRANCH", "phase": "backward", "module": ("",), "origin": "op", "value": "nan", "harm": ("gradient", "weight", "state"), "by": "nan_birth"}
ALWAYS = {**LATE, "precision": "structural", "fixes": ("op",)}
ZERO = {"usual": 1.0, "odd": 0.0}
CASES = [
    Case("ratio", LateMask, Program(net="decoder", precision="bf16"),
         Truth(**{**LATE, "cause": "EXP_OVERFLOW", "phase": "forward", "value": "+inf", "by": "birth"}, op=("exp",), precision="curable",
               fixes=("precision", "op")), vary=VARY),
    Case("nan_to_num", LateMask, Program(net="lstm", optimizer="adam"), Truth(**ALWAYS, op=("div",), decoys=("forward:div",)), {"kind": "nan_to_num", **ZERO}, VARY,
         "pytorch/pytorch #94700"),
    Case("selected_late", LateMask, Program(net="mlp", optimizer="hand"), Truth(**ALWAYS, op=("div",), decoys=("forward:log1p",)), {"kind": "log1p", **ZERO}, VARY,
         "pytorch/pytorch #152088"),
    Case("ratio_finite", LateMask, Program(net="encoder"), Truth(), {"odd": 60.0}, VARY),
    Case("selected_early", LateMask, Program(net="unet"), Truth(), {"kind": "log1p", "early": True, **ZERO}, VARY),
]

if __name__ == "__main__":
    main(CASES)
