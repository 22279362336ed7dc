"""The optional calls: a loop that tells nanquest what the Trainers' callbacks tell it.

usage: callbacks.py RUN_DIR batch|huggingface|lightning
"""
import sys
import types

import torch
from torch import nn

import nanquest

run_dir, way = sys.argv[1:]
torch.manual_seed(0)
data = torch.randn(20, 4)
data[13] = float("nan")
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(data)

    def __getitem__(self, i):
        return data[i]


def train(rows):
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()


if way == "batch":
    nanquest.attach(run_dir=run_dir, level="watch")
    assert nanquest.step(1000) == 1000
    for first in range(0, 20, 5):
        ids = range(first, first + 5)
        nanquest.batch({0: list(ids), 5: torch.tensor(list(ids)), 10: {"sample_id": torch.tensor(list(ids))}}.get(first, 3.5))
        train(data[first:first + 5])
        assert nanquest.step() == 1000 + first // 5
elif way == "huggingface":
    from nanquest.huggingface import NanquestCallback
    callback = NanquestCallback(run_dir=run_dir, level="watch")
    loader = torch.utils.data.DataLoader(Rows(), batch_size=5, shuffle=True, num_workers=1)
    args = types.SimpleNamespace(gradient_accumulation_steps=1, world_size=1, learning_rate=1e-2)
    state = types.SimpleNamespace(global_step=500)
    callback.on_train_begin(args, state, None, model=model, train_dataloader=loader)
    for _ in range(2):
        for rows in loader:
            callback.on_step_begin(args, state, None)
            train(rows)
            state.global_step += 1
elif way == "lightning":
    from nanquest.lightning import NanquestCallback
    callback = NanquestCallback(run_dir=run_dir, level="watch")
    trainer = types.SimpleNamespace(global_step=70, precision="32-true", accumulate_grad_batches=1)
    callback.on_fit_start(trainer, types.SimpleNamespace(hparams={"lr": 1e-2}))
    for first in range(0, 20, 5):
        batch = {"rows": data[first:first + 5], "idx": torch.arange(first, first + 5)}
        callback.on_train_batch_start(trainer, None, batch, 0)
        train(batch["rows"])
        trainer.global_step += 1
nanquest.detach()
