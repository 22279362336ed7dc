"""Lightning's Trainer teaches a small network to add; batch BAD has a row that is NaN.

usage: fallback_lightning.py PACKAGE PRECISION BAD OUT.pt [callback POLICY]      (PACKAGE: lightning.pytorch, pytorch_lightning)
"""
import importlib
import sys

import torch
from torch import nn

package, precision, bad, out = importlib.import_module(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
package.seed_everything(42)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        row = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return row, row.sum(0, keepdim=True)


class Module(package.LightningModule):
    rates = {}

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.05), nn.Linear(32, 1))

    def training_step(self, batch, number):
        rows, sums = batch
        if number == bad:
            rows = torch.cat([rows[1:], torch.full_like(rows[:1], float("nan"))])
        loss = nn.functional.mse_loss(self.net(rows), sums.to(rows.dtype))
        self.log("loss", loss.detach().float())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-2)
        optimizer.register_step_pre_hook(lambda o, a, k: self.rates.update({self.trainer.global_step: o.param_groups[0]["lr"]}))
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def held_out(net):
    rows = torch.stack([Rows()[index][0] for index in range(1000, 1064)])
    with torch.no_grad():
        told = net.eval()(rows.to(next(net.parameters()).dtype)).float()
    net.train()
    return (told - rows.sum(1, keepdim=True)).square().mean().item()


module, callbacks = Module(), []
if "callback" in sys.argv:
    from nanquest.lightning import NanquestCallback
    callbacks = [NanquestCallback(on_incident=sys.argv[-1])]
before = held_out(module.net)
trainer = package.Trainer(max_epochs=1, accelerator="cpu", devices=1, precision=precision, gradient_clip_val=1.0, callbacks=callbacks,
                          logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(module, torch.utils.data.DataLoader(Rows(), batch_size=8))
torch.save({"rates": Module.rates, "before": before, "after": held_out(module.net), "dtype": str(next(module.parameters()).dtype),
            "finite": all(bool(torch.isfinite(p).all()) for p in module.parameters())}, out)
