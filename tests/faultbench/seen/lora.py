"""An fp16 adapter whose first factor has a gradient of exact zeros: the epsilon of Adam is lost in fp16, and 0/0 follows."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from optimizers import HandAdam  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "google-deepmind/optax #1754, keras-team/keras #11860, afiaka87/glide-finetune #5"


class Adapter(nn.Module):
    """x + B(A(x)), B zero at first; used from the step of the strike on."""

    def __init__(self, width, fault):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(width, 4) * 0.3), nn.Parameter(torch.zeros(4, width))
        self.fault = fault

    def forward(self, x):
        if not self.fault.clock.struck:
            return x
        return x + ((torch.tanh(x).to(self.a.dtype) @ self.a) @ self.b).to(x.dtype)


class Lora(Fault):
    eps, how = 1e-8, "hand"

    def part(self, width):
        return Adapter(width, self)

    def prepare(self, net):
        part = getattr(net, self.clock.program.place).inner
        if self.clock.program.precision != "fp64":
            part.half()

    def optimizer(self, net):
        eps = 1e-4 if self.clock.repaired else self.eps
        if self.how == "hand":
            return HandAdam(net.parameters(), lr=1e-3, eps=eps)
        return torch.optim.Adam(net.parameters(), lr=1e-3, eps=eps, foreach=self.how == "foreach")

    def loss(self, logits, hidden, batch):
        return 4 * super().loss(logits, hidden, batch)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_PLACE, "accumulate": (1,)}
EPS = Truth(cause="EPS_UNDERFLOW", phase="optimizer", op=("div",), origin="op", precision="curable", fixes=("precision", "hyperparameter"),
            harm=("weight",))
CASES = [
    Case("hand", Lora, Program(), EPS, vary=VARY),
    Case("single", Lora, Program(net="lstm"), Truth(**{**vars(EPS), "op": ("addcdiv_",)}), {"how": "single"}, VARY),
    Case("foreach", Lora, Program(net="mlp"), Truth(**{**vars(EPS), "op": ("_foreach_addcdiv_",)}), {"how": "foreach"}, VARY),
    Case("larger_eps", Lora, Program(net="cnn"), Truth(), {"eps": 1e-4}, VARY),
]

if __name__ == "__main__":
    main(CASES)
