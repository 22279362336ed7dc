"""A training on rows drawn by a DataLoader; row 13 holds a NaN. Prints which rows each step was made of, and its loss.

usage: quarantine.py HOW [IDS]      (IDS: rows that the program leaves out itself, as 3,5)
HOW: plain; workers; ahead (a batch is drawn while the one before is in hand); copied (so, and copied first); accumulate (2);
iterable; validates (on all rows, after each step); named (no DataLoader; nanquest.batch); rate (infinite, rows are good);
ddp (two ranks)
"""
import sys

import torch
from torch import nn

how = sys.argv[1]
left_out = set(map(int, sys.argv[2].split(","))) if len(sys.argv) > 2 else set()
torch.manual_seed(0)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        x = torch.randn(4, generator=torch.Generator().manual_seed(index))
        if index == 13 and how != "rate":
            x[1] = float("nan")
        return {"x": x, "y": x.nan_to_num().sum(0, keepdim=True), "row": index}


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return (Rows()[index] for index in range(48))


class Rest(torch.utils.data.BatchSampler):
    def __iter__(self):
        for batch in super().__iter__():
            if rest := [index for index in batch if index not in left_out]:
                yield rest


def batches(loader):
    if how not in ("ahead", "copied"):
        yield from loader
        return
    own = {key: value.clone() for key, value in ahead.items()} if (ahead := next(it := iter(loader))) and how == "copied" else ahead
    for following in it:
        ahead = {key: value.clone() for key, value in following.items()} if how == "copied" else following
        yield own
        own = ahead
    yield own


rows, model = Rows(), nn.Linear(4, 1)
net, sampler = model, torch.utils.data.RandomSampler(rows)
if how == "ddp":
    torch.distributed.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(model)
    sampler = torch.utils.data.DistributedSampler(rows, shuffle=False)
if how == "iterable":
    loader = torch.utils.data.DataLoader(Stream(), batch_size=8)
elif how == "named":
    import nanquest
    loader = [torch.utils.data.default_collate([Rows()[i] for i in range(first, first + 8)]) for first in range(0, 48, 8)]
else:
    loader = torch.utils.data.DataLoader(rows, batch_sampler=Rest(sampler, 8, False), num_workers=2 if how == "workers" else 0)
whole = torch.utils.data.DataLoader(rows, batch_size=16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
parts = 2 if how == "accumulate" else 1
for number, batch in enumerate(batches(loader)):
    if how == "named":
        nanquest.batch([f"row {index}" for index in batch["row"].tolist()])
    loss = (net(batch["x"]) - batch["y"]).square().mean()
    loss.backward()
    print(*batch["row"].tolist(), "loss", loss.item(), flush=True)
    if number % parts == parts - 1:
        if how == "rate":
            optimizer.param_groups[0]["lr"] = float("inf") if number == 2 else 1e-2
        optimizer.step()
        optimizer.zero_grad()
    if how == "validates":
        with torch.no_grad():
            print("validated on", sum(len(model(part["x"])) for part in whole))
if how == "ddp":
    torch.distributed.destroy_process_group()
