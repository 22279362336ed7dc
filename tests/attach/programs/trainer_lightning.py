"""Lightning's Trainer on rows of noise; row 13 has a NaN.

usage: trainer_lightning.py PROCESSES [callback]
"""
import sys

import transformers  # noqa: F401 (as in most programs of this kind)
try:
    import lightning.pytorch as lightning
except ImportError:
    import pytorch_lightning as lightning
import torch
from torch import nn


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
        self.rows[13, 2] = float("nan")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"rows": self.rows[index], "idx": index}


class Module(lightning.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))

    def training_step(self, batch, batch_index):
        return self.net(batch["rows"]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


processes, callbacks = int(sys.argv[1]), []
if "callback" in sys.argv:
    from nanquest.lightning import NanquestCallback
    callbacks = [NanquestCallback()]
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", devices=processes, strategy="ddp" if processes > 1 else "auto", precision="bf16-mixed",
    callbacks=callbacks, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Module(), torch.utils.data.DataLoader(Rows(), batch_size=4))
