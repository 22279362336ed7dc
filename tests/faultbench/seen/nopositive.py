"""A detection loss averages over the positive anchors; a batch has none, or one where a deviation is asked for."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/vision #2144, KevinMusgrave/pytorch-metric-learning #107, tryolabs/luminoth #68"


class NoPositive(Fault):
    kind, left = "mean", 0

    def batch(self, batch):
        positive = torch.zeros(batch["ids"].shape, dtype=torch.bool)
        positive[:, ::5] = True
        if self.clock.striking:
            positive[:] = False
            positive.view(-1)[: self.left] = True
        return dict(batch, positive=positive)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        hidden = hidden.flatten(2).transpose(1, 2) if hidden.dim() == 4 else hidden
        error = torch.tanh(hidden).pow(2).mean(-1)
        chosen = error[batch["positive"]]
        if self.kind == "guarded" or self.clock.repaired:
            return loss + chosen.sum() / max(chosen.numel(), 1)
        if self.kind == "std":
            return loss + error.mean() + 0.1 * chosen.std()
        if self.kind == "scale":
            return loss * (1 + chosen.mean().detach())
        return loss + chosen.mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}
WHOLE = {**VARY, "net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}
EMPTY = Truth(cause="EMPTY_REDUCTION", phase="forward", op=("mean",), module=("",), origin="op", also_origin=("input",), precision="structural",
              value="nan", fixes=("data", "op"), harm=("loss",))
CASES = [
    Case("mean", NoPositive, Program(), EMPTY, vary=WHOLE),
    Case("scale", NoPositive, Program(net="lstm"), Truth(**{**vars(EMPTY), "harm": ("loss", "gradient", "weight", "state")}), {"kind": "scale"}, WHOLE),
    Case("deviation", NoPositive, Program(net="mlp"),
         Truth(**{**vars(EMPTY), "op": ("std", "var", "std_mean"), "harm": ("loss", "gradient", "weight", "state")}), {"kind": "std", "left": 1}, WHOLE),
    Case("guarded", NoPositive, Program(net="cnn"), Truth(), {"kind": "guarded"}, WHOLE),
    Case("one", NoPositive, Program(net="encoder"), Truth(), {"left": 1}, WHOLE),
]

if __name__ == "__main__":
    main(CASES)
