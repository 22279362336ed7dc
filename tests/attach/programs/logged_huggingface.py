"""The Trainer of transformers that logs to TensorBoard, for four steps and then, another one,
for eight; the batch of its step 6 has a NaN.
"""
import os

import torch
import transformers
from torch import nn


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
        self.rows[26, 2] = float("nan")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"rows": self.rows[index], "labels": self.rows[index].nan_to_num().sum()}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))

    def forward(self, rows, labels):
        return {"loss": (self.net(rows).squeeze(1) - labels).square().mean()}


class Trainer(transformers.Trainer):
    def _get_train_sampler(self, *args, **kwargs):
        return torch.utils.data.SequentialSampler(self.train_dataset)


for folder, steps in (("first", 4), ("second", 8)):
    os.environ["TENSORBOARD_LOGGING_DIR"] = f"log/{folder}"
    trainer = Trainer(Model(), transformers.TrainingArguments(
        "out", max_steps=steps, per_device_train_batch_size=4, use_cpu=True, learning_rate=1e-3, report_to="tensorboard",
        save_strategy="no", logging_steps=1, logging_nan_inf_filter=False, disable_tqdm=True), train_dataset=Rows())
    trainer.train()
