"""A Trainer that saves every second step, and of which the sixth step spoils a weight; or one that goes on from a file of it.

usage: trainers.py huggingface|lightning [all | CHECKPOINT]; all: no file is removed
"""
import sys

import torch
import transformers

word = (*sys.argv, None)[2]
resumed = word if word != "all" else None
rows = torch.randint(0, 64, (64, 8), generator=torch.Generator().manual_seed(0))


def huggingface():
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=64, n_positions=8, n_embd=16, n_layer=2, n_head=2))

    class Spoil(transformers.TrainerCallback):
        def on_optimizer_step(self, args, state, control, **kwargs):
            if state.global_step == 5 and not resumed:
                with torch.no_grad():
                    model.transformer.h[1].mlp.c_fc.weight[2, 3] = float("nan")

    arguments = transformers.TrainingArguments(
        "out", max_steps=9 if resumed else 6, per_device_train_batch_size=4, use_cpu=True, report_to="none", save_strategy="steps", save_steps=2,
        save_total_limit=None if word else 1, disable_tqdm=True)
    data = [{"input_ids": row, "labels": row} for row in rows]
    transformers.Trainer(model, arguments, train_dataset=data, callbacks=[Spoil()]).train(resume_from_checkpoint=resumed)


def lightning():
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))

        def training_step(self, batch, index):
            return self.net(batch.float() * (float("nan") if self.global_step == 5 and not resumed else 1)).square().mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    keep = pl.callbacks.ModelCheckpoint("out", every_n_train_steps=2, save_top_k=-1)
    trainer = pl.Trainer(max_steps=9 if resumed else 6, accelerator="cpu", devices=1, callbacks=[keep], logger=False, enable_progress_bar=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(rows, batch_size=4), ckpt_path=resumed)


globals()[sys.argv[1]]()
