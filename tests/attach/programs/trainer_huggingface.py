"""The Trainer of transformers on rows of noise; row 13 has a NaN.

usage: trainer_huggingface.py [callback] [save|resume]

save: it ends after two steps with a checkpoint, from which resume goes on.
"""
import sys

import transformers
import torch
from torch import nn


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
        self.rows[13, 2] = float("nan")

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


callbacks = []
if "callback" in sys.argv:
    from nanquest.huggingface import NanquestCallback
    callbacks = [NanquestCallback()]
trainer = transformers.Trainer(
    Model(), transformers.TrainingArguments(
        "out", num_train_epochs=1, per_device_train_batch_size=4, bf16=True, use_cpu=True,
        learning_rate=1e-3, seed=5, report_to="none", save_strategy="steps" if "save" in sys.argv else "no", save_steps=2,
        max_steps=2 if "save" in sys.argv else -1, disable_tqdm=True), train_dataset=Rows(), callbacks=callbacks)
trainer.train(resume_from_checkpoint="resume" in sys.argv)
