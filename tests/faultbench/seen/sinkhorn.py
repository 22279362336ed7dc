"""Sinkhorn iterations with a small regularisation: a row of the kernel underflows to zero and is divided by."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "PythonOT/POT #194, #54, rajewsky-lab/novosparc #50"


class Sinkhorn(Fault):
    """Tokens are matched to slots; one sample has costs that are large for every slot."""

    far, stable = 150.0, False

    def batch(self, batch):
        extra = torch.zeros(batch["y"].shape)
        if self.clock.striking:
            extra[1] = self.far
        return dict(batch, extra=extra)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        hidden = hidden.flatten(2).transpose(1, 2) if hidden.dim() == 4 else hidden
        cost = 1 + torch.tanh(hidden[..., :6]) + batch["extra"].to(hidden.dtype)[:, None, None]
        if self.stable or self.clock.repaired:
            cost = cost - cost.amin((1, 2), keepdim=True).detach()
        kernel = torch.exp(-cost)
        u, v = torch.ones_like(kernel[..., 0]), torch.ones_like(kernel[:, 0])
        for _ in range(3):
            u = (1.0 / kernel.shape[1]) / (kernel @ v[..., None])[..., 0]
            v = (1.0 / kernel.shape[2]) / (kernel.transpose(1, 2) @ u[..., None])[..., 0]
        plan = u[..., None] * kernel * v[:, None, :]
        return loss + 0.01 * (plan * torch.tanh(hidden[..., :6])).sum((1, 2)).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER}
ZERO = Truth(cause="DIV_ZERO", phase="forward", op=("div", "reciprocal", "mul"), module=("",), origin="op", precision="curable", value="+inf",
             fixes=("precision", "op"), harm=("loss", "gradient", "weight", "state"))
CASES = [
    Case("far", Sinkhorn, Program(), ZERO, vary=VARY),
    Case("stable", Sinkhorn, Program(net="lstm"), Truth(), {"stable": True}, VARY),
    Case("near", Sinkhorn, Program(net="mlp"), Truth(), {"far": 20.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
