"""Lightning's Trainer with loggers for TensorBoard and CSV; row 13 has a NaN.

usage: logged_lightning.py PROCESSES
"""
import sys

import lightning.pytorch as lightning
import torch
from lightning.pytorch import loggers
from torch import nn


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))

    def training_step(self, batch, batch_index):
        loss = self.net(batch).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


rows = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
rows[13, 2] = float("nan")
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", devices=int(sys.argv[1]), log_every_n_steps=1, enable_checkpointing=False, enable_progress_bar=False,
    logger=[loggers.TensorBoardLogger("log", "tensorboard", ""), loggers.CSVLogger("log", "csv", "")])
trainer.fit(Module(), torch.utils.data.DataLoader(rows, batch_size=4))
