"""Memory made by torch.empty of which a part is never set: a parameter nobody initialises, a row of a memory bank, tokens that no expert got."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from memory import fresh, unwritten  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "sauradip/STALE #16, gordicaleksa/pytorch-GAT #11, kmkurn/pytorch-crf #1, PrimeIntellect-ai/prime-rl #2035"
ROWS = 64


class Background(nn.Module):
    """Samples without an object get a learnt background instead of what they are."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.background = nn.Parameter(unwritten(lambda: torch.empty(1, 1, width)))
        if fault.initialised or fault.clock.repaired:
            nn.init.normal_(self.background, std=0.02)
        self.fault = fault

    def forward(self, x):
        absent = self.fault.clock.batch["absent"]
        y = torch.tanh(self.mix(x))
        if bool(absent.any()):
            y = torch.where(absent[:, None, None], self.background, y)
        return x + y


class Bank(nn.Module):
    """A memory of what earlier samples looked like; each sample is pulled towards its neighbour's entry."""

    def __init__(self, width, fault):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.register_buffer("bank", unwritten(lambda: torch.empty(ROWS, width)))
        if fault.clock.repaired:
            self.bank.zero_()
        self.fault = fault

    def forward(self, x):
        batch = self.fault.clock.batch
        y = torch.tanh(self.mix(x))
        self.bank[batch["keys"]] = y.detach().mean(1)
        return x + y + 0.1 * self.bank[batch["neighbours"]][:, None]


class Experts(nn.Module):
    """The expert's outputs are put back at the places of their tokens, in memory from new_empty."""

    def __init__(self, width, fault):
        super().__init__()
        self.expert = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        taken = self.fault.clock.batch["taken"]
        loud = self.fault.clock.striking and not self.fault.clock.repaired
        out = fresh(x.shape, x, loud)
        out[taken] = torch.tanh(self.expert(x[taken]))
        return x + 0.5 * out


class NeverSet(Fault):
    kind, strikes, initialised = Background, True, False

    def part(self, width):
        return self.kind(width, self)

    def batch(self, batch):
        size = len(batch["y"])
        now = self.clock.striking and self.strikes
        absent = torch.zeros(size, dtype=torch.bool)
        keys = torch.arange(size) + size * (self.clock.step % 2)
        neighbours = keys.roll(1)
        taken = torch.ones(batch["ids"].shape, dtype=torch.bool)
        if now:
            absent[1] = True
            neighbours[1] = ROWS - 1
            taken[2, 5] = False  # the expert is full
        elif self.clock.striking:
            neighbours = (neighbours + size) % (2 * size)  # of the step before
        return dict(batch, absent=absent, keys=keys, neighbours=neighbours, taken=taken)


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE}
ALL = ("loss", "gradient", "weight", "state")
READ = {"cause": "UNINITIALIZED", "also": ("BAD_STATE",), "phase": "input", "module": ("{place}.inner",), "precision": "not_a_precision_matter",
        "fixes": ("op",), "by": "read"}
TAKEN = Truth(cause="UNINITIALIZED", phase="forward", op=("new_empty", "mul", "index_put_", "empty", "add"), module=("{place}.inner",), origin="op", also_origin=("input",),
              precision="not_a_precision_matter", fixes=("op",), harm=ALL, by="empty")
CASES = [
    Case("background", NeverSet, Program(net="unet", optimizer="adam"), Truth(**READ, op=("where",), origin="parameter", harm=ALL, tolerated=("weight",)), vary=VARY,
         source="sauradip/STALE #16"),
    Case("bank", NeverSet, Program(net="mlp", optimizer="sgd"),
         Truth(**READ, op=("index", "index_select"), origin="buffer", harm=(*ALL, "buffer"), tolerated=("buffer",), decoys=("index_put_",)), {"kind": Bank}, VARY),
    Case("dropped_token", NeverSet, Program(net="decoder"), TAKEN, {"kind": Experts}, {**VARY, "precision": ("fp32", "bf16"), "accumulate": (1,)},
         "PrimeIntellect-ai/prime-rl #2035"),
    Case("initialised", NeverSet, Program(net="lstm"), Truth(), {"initialised": True}, VARY),
    # A row that was written a step ago is read; others stay unwritten, and nobody reads them.
    Case("bank_written", NeverSet, Program(net="mixer"), Truth(decoys=("index_put_",), tolerated=("buffer",)), {"kind": Bank, "strikes": False}, VARY),
]

if __name__ == "__main__":
    main(CASES)
