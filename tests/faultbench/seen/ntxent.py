"""A contrastive loss that takes exp of similarities over a small temperature."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "Lightning-Universe/lightning-bolts #811, HobbitLong/SupContrast #104, emadeldeen24/TS-TCC #25"


class NtXent(Fault):
    temperature, stable = 0.009, False

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        tau = self.temperature if self.clock.striking else 0.2
        one, two = F.normalize(hidden.mean(1), dim=-1), F.normalize(hidden[:, ::2].mean(1), dim=-1)
        similar = one @ two.T / tau
        if self.stable or self.clock.repaired:
            return loss + 0.01 * (similar.logsumexp(1) - similar.diagonal()).mean()
        together = similar.exp()
        return loss - 0.01 * (together.diagonal() / together.sum(1)).log().mean()


class Others(NtXent):
    """The maximum is subtracted, the sample itself left out of the sum: all that is left underflows, and log(0) follows."""

    def loss(self, logits, hidden, batch):
        loss = Fault.loss(self, logits, hidden, batch)
        tau = self.temperature if self.clock.striking else 0.5
        one = F.normalize(hidden.mean(1), dim=-1)
        own = torch.eye(len(one), dtype=one.dtype)
        similar = (one @ one.T - 1.0 - 0.5 * (1 - own)) / tau
        rest = (similar.exp() * (1 - own)).sum(1)
        return loss + 0.01 * torch.log(rest + (1e-30 if self.clock.repaired else 0.0)).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, "precision": ("fp32",)}
EXP = Truth(cause="EXP_OVERFLOW", phase="forward", op=("exp",), module=("",), origin="op", also_origin=("setting",), precision="curable",
            value="+inf", fixes=("precision", "op", "hyperparameter"), harm=("loss", "gradient", "weight", "state"))
LOG = Truth(cause="LOG_ZERO", phase="forward", op=("log",), module=("",), origin="op", precision="curable", value="-inf",
            fixes=("precision", "op", "hyperparameter"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("cold", NtXent, Program(), EXP, vary=VARY),
    Case("others", Others, Program(net="mlp"), LOG, {"temperature": 0.0045}, VARY),
    Case("logsumexp", NtXent, Program(net="lstm"), Truth(), {"stable": True}, VARY),
    Case("near", NtXent, Program(net="cnn"), Truth(), {"temperature": 0.014}, VARY),
]

if __name__ == "__main__":
    main(CASES)
