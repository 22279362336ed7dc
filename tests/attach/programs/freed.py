"""A program that deletes its models gets their memory back, and may swap their tensors; prints "freed" if so."""
import ctypes
import gc
import sys
import weakref

import torch
from torch import nn

import nanquest


class Mallinfo2(ctypes.Structure):
    """glibc's struct mallinfo2: what malloc has given out, in all arenas."""
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


def in_use():
    """Bytes that malloc has given out and not got back: exact, where resident memory moves by the allocator's moods."""
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def trial():
    """One model, trained and dropped: weak references to what must be gone."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.BatchNorm1d(1024), nn.Linear(1024, 512))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        x = torch.randn(4, 512)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    moment = optimizer.state[model[0].weight]["exp_avg"]
    return [weakref.ref(it) for it in (model, optimizer, model[0].weight, moment)]


nanquest.attach(run_dir=sys.argv[1], level=sys.argv[2], on_incident=sys.argv[3])
after = []
for number in range(28):
    left = trial()
    gc.collect()
    assert all(reference() is None for reference in left), [type(reference()) for reference in left]
    after.append(in_use())
grown = (after[-1] - after[3]) / 2**20
assert grown < 8, f"{grown:.1f} MiB more after 24 models of 12 MiB"  # one model with its state has 12 MiB

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.utils.swap_tensors(model.weight, nn.Parameter(torch.zeros(4, 4)))
assert float(model.weight.detach().sum()) == 0
print("freed")
