"""A batch is a view of memory that others refill: by the time of the backward pass it holds another sample, half written."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import threading  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "thu-ml/tianshou #1281, openai/baselines #418, pytorch/pytorch #126946"


class Gated(nn.Module):
    """A gate from the batch is used twice; between the two the loader's thread has its turn."""

    def __init__(self, width, fault):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        gate = self.fault.view("gate")
        x = x + torch.tanh(self.one(x)) * gate[:, None, None]
        if self.fault.kind == "thread" and self.fault.clock.striking:
            thread = threading.Thread(target=self.fault.refill, args=("gate",))
            thread.start()
            thread.join()
        return x + torch.tanh(self.two(x)) * (1.5 - gate)[:, None, None]


class Refill(Fault):
    kind, copied = "backward", False

    def part(self, width):
        return Gated(width, self) if self.kind == "thread" else None

    def batch(self, batch):
        weight = torch.linspace(0.5, 1.5, len(batch["y"]))
        return dict(batch, weight=torch.from_numpy(weight.numpy().copy()), gate=torch.from_numpy(weight.numpy().copy()))

    def view(self, name):
        memory = self.clock.batch[name]
        return memory.clone() if self.copied or self.clock.repaired else memory

    def refill(self, name):
        self.clock.batch[name].numpy()[1:3] = float("nan")

    def loss(self, logits, hidden, batch):
        weight = self.view("weight")
        error = (torch.tanh(hidden.mean((1, 2))) - 0.3).pow(2)
        loss = super().loss(logits, hidden, batch) + 0.1 * (error * weight).mean()
        if self.kind == "backward" and self.clock.striking:
            self.refill("weight")
        return loss

    def before_step(self, net, optimizer):
        if self.kind == "after" and self.clock.striking:
            self.refill("weight")


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER}
CHANGED = {"cause": "RACE", "origin": "input", "precision": "not_a_precision_matter", "fixes": ("data", "op"), "by": "host"}
CASES = [
    Case("backward", Refill, Program(net="mlp", optimizer="adam"),
         Truth(**CHANGED, phase="backward", op=("mul",), module=("",), harm=("gradient", "weight", "state")), vary=VARY),
    Case("thread", Refill, Program(net="unet", optimizer="sgd"),
         Truth(**CHANGED, phase="forward", op=("rsub", "sub"), module=("{place}.inner",), harm=("loss", "gradient", "weight", "state")),
         {"kind": "thread"}, {**VARY, **ANY_PLACE}),
    Case("copied", Refill, Program(net="encoder"), Truth(), {"copied": True}, VARY),
    Case("thread_copied", Refill, Program(net="cnn"), Truth(), {"kind": "thread", "copied": True}, {**VARY, **ANY_PLACE}),
    Case("after_backward", Refill, Program(net="decoder"), Truth(), {"kind": "after"}, VARY),
]

if __name__ == "__main__":
    main(CASES)
