"""A batch without a token that counts: the mean over what is left divides by zero, and a group of one has no deviation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "meta-pytorch/torchtune #2341, allenai/OLMo-core #657, nvidia-cosmos/cosmos-rl #155, jolibrain/wheatley #93"


class Ignored(Fault):
    kind, left, guarded = "masked", 0, False

    def batch(self, batch):
        size, striking = len(batch["y"]), self.clock.striking
        label, groups = batch["y"].clone(), torch.tensor(size // 2)
        keep = torch.ones(batch["ids"].shape)
        keep[:, 12:] = 0.0
        if striking:
            keep[:] = 0.0
            keep.view(-1)[: self.left] = 1.0
            label[self.left :] = -100
            groups = torch.tensor(size - max(self.left, 1))
        return dict(batch, keep=keep, label=label, groups=groups, reward=torch.linspace(-1, 1, size))

    def loss(self, logits, hidden, batch):
        guarded = self.guarded or self.clock.repaired
        label = batch["label"]
        if self.kind == "masked":
            hidden = hidden.flatten(2).transpose(1, 2) if hidden.dim() == 4 else hidden
            error = torch.tanh(hidden).pow(2).mean(-1)
            keep = batch["keep"].to(error.dtype)
            count = keep.sum().clamp(min=1.0) if guarded else keep.sum()
            return super().loss(logits, hidden, batch) + 0.1 * (error * keep).sum() / count
        if self.kind == "chunked":
            count = (label != -100).sum()
            total = F.cross_entropy(logits, label, ignore_index=-100, reduction="sum")
            return total / (count.clamp(min=1) if guarded else count)
        if self.kind == "ignored":
            if guarded and not bool((label != -100).any()):
                return 0.0 * logits.sum()
            return F.cross_entropy(logits, label, ignore_index=-100)
        # Advantages within a group of answers; one group may be left with a single answer.
        groups = batch["reward"].to(logits.dtype).tensor_split([int(batch["groups"])])
        parts = [(g - g.mean()) / (g.std(unbiased=not guarded) + 1e-4) for g in groups]
        chosen = F.log_softmax(logits, -1).gather(1, batch["y"][:, None])[:, 0]
        return super().loss(logits, hidden, batch) - 0.01 * (torch.cat(parts) * chosen).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32", "bf16")}
NONE = {"phase": "forward", "module": ("",), "origin": "op", "also_origin": ("input",), "precision": "structural", "value": "nan", "fixes": ("data", "op")}
ALL = ("loss", "gradient", "weight", "state")
ZERO = {**NONE, "cause": "DIV_ZERO", "also": ("EMPTY_REDUCTION",), "op": ("div",)}
EMPTY = {**NONE, "cause": "EMPTY_REDUCTION"}
CASES = [
    Case("masked_mean", Ignored, Program(net="decoder", optimizer="adam"), Truth(**ZERO, harm=ALL),
         vary={**VARY, "net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}),
    # The gradient of a label that is ignored is written as zero: the loss alone is NaN.
    Case("counted", Ignored, Program(net="lstm"), Truth(**ZERO, harm=("loss",)), {"kind": "chunked"}, VARY),
    Case("ignored", Ignored, Program(net="unet", optimizer="sgd"), Truth(**EMPTY, op=("nll_loss_forward", "nll_loss"), harm=("loss",)), {"kind": "ignored"}, VARY,
         "nvidia-cosmos/cosmos-rl #155"),
    Case("group_of_one", Ignored, Program(net="mlp", optimizer="adamw_fused"), Truth(**EMPTY, op=("std", "var", "std_mean"), harm=ALL), {"kind": "group"}, VARY,
         "jolibrain/wheatley #93"),
    Case("guarded", Ignored, Program(net="cnn"), Truth(), {"kind": "chunked", "guarded": True}, VARY),
    Case("one_token", Ignored, Program(net="encoder"), Truth(), {"left": 1}, {**VARY, "net": ("encoder", "decoder", "cnn", "lstm", "mixer", "mlp")}),
]

if __name__ == "__main__":
    main(CASES)
