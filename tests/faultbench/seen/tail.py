"""A buffer of whole blocks from empty, whose last block is not full: its tail is masked or cut too late."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from memory import fresh  # noqa: E402
from torch import nn  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth  # noqa: E402

SOURCE = "deepbeepmeep/Wan2GP #1628, Dao-AILab/flash-attention #2374, vllm-project/vllm #936, NVIDIA/apex #1322"
BLOCK = 8


def blocks(like, loud, tokens):
    """Memory for so many tokens, unwritten where `loud`."""
    return fresh((like.shape[0], tokens, like.shape[2]), like, loud)


class Cache(nn.Module):
    """Attention over cached values in blocks. A key beyond the sequence has the weight zero, and zero times NaN is NaN."""

    def __init__(self, width, fault):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        loud = fault.clock.striking and not fault.clock.repaired
        used = int(fault.clock.batch["used"])
        q, k, v = self.qkv(x).chunk(3, -1)
        room = BLOCK * -(-used // BLOCK)
        keys, values = blocks(x, False, room), blocks(x, loud, room)
        keys[:, :used], values[:, :used] = k[:, :used], v[:, :used]
        valid = torch.arange(room) < used
        scores = (q @ keys.transpose(1, 2) / math.sqrt(x.shape[-1])).masked_fill(~valid, -math.inf)
        if fault.cut:
            values = torch.where(valid[:, None], values, torch.zeros_like(values))
        return x + scores.softmax(-1) @ values


class Chunks(nn.Module):
    """A layer over chunks of a sequence, whose outputs go into one memory; what does not fill a chunk is forgotten."""

    def __init__(self, width, fault):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.fault = fault

    def forward(self, x):
        fault = self.fault
        loud = fault.clock.striking and not fault.clock.repaired
        tokens, size = x.shape[1], int(fault.clock.batch["chunk"])
        count = tokens // size if loud else -(-tokens // size)
        out = blocks(x, loud, tokens)
        for i in range(count):
            out[:, i * size : (i + 1) * size] = torch.tanh(self.layer(x[:, i * size : (i + 1) * size]))
        return x + 0.5 * out


class Tail(Fault):
    kind, used, chunk, cut = Cache, 13, 5, False

    def part(self, width):
        return self.kind(width, self)

    def batch(self, batch):
        now = self.clock.striking
        return dict(batch, used=torch.tensor(self.used if now else 2 * BLOCK), chunk=torch.tensor(self.chunk if now else 4))


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER, **ANY_PLACE, "precision": ("fp32", "bf16")}
ONCE = {**VARY, "accumulate": (1,)}  # gradients of an earlier micro-batch are copied into fresh memory too, and what chance left there is no fault
UNWRITTEN = {"cause": "UNINITIALIZED", "phase": "forward", "module": ("{place}.inner",), "origin": "op", "also_origin": ("input",), "precision": "not_a_precision_matter",
             "fixes": ("op",), "harm": ("loss", "gradient", "weight", "state"), "by": "empty"}
CASES = [
    Case("values", Tail, Program(net="decoder", optimizer="adamw_single"), Truth(**UNWRITTEN, op=("new_empty", "bmm", "empty", "copy_", "matmul")), vary=ONCE),
    Case("last_chunk", Tail, Program(net="cnn", precision="bf16"), Truth(**UNWRITTEN, op=("new_empty", "mul", "empty", "copy_")), {"kind": Chunks}, ONCE,
         "NVIDIA/apex #1322"),
    Case("cut", Tail, Program(net="lstm"), Truth(decoys=("new_empty",)), {"cut": True}, VARY),
    Case("full_blocks", Tail, Program(net="encoder"), Truth(decoys=("new_empty",)), {"used": 8}, VARY),
    Case("even_chunks", Tail, Program(net="mixer"), Truth(decoys=("new_empty",)), {"kind": Chunks, "chunk": 2}, VARY),
]

if __name__ == "__main__":
    main(CASES)
