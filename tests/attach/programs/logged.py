"""A small net whose rows are logged with a logger of the program's own; two batches are bad.

usage: logged.py torch|tensorboardX|wandb|wandb-steps|mlflow [healthy] [broken] [scaled] [explained] [listens] [attach|attach-off]
  healthy: no batch is bad. broken: the writer's texts raise. scaled: under a GradScaler. attach: from inside, after the
  writer was opened; attach-off: the same with loggers="off". explained: waits for the verdict on the first incident. listens: asks to be
  told of incidents, and prints what it gets.
"""
import glob
import sys
import time

import torch

way, words = sys.argv[1], sys.argv[2:]
if way in ("torch", "tensorboardX"):
    if way == "torch":
        from torch.utils.tensorboard import SummaryWriter
    else:
        from tensorboardX import SummaryWriter
    SummaryWriter("closed").close()

    class Writer(SummaryWriter):
        def add_text(self, *args, **kwargs):
            if "broken" in words:
                raise OSError("no space left")
            super().add_text(*args, **kwargs)

    writer = Writer("log")
    log, end = lambda step, loss: writer.add_scalar("loss", loss, step), writer.close
elif way == "mlflow":
    import mlflow
    mlflow.set_tracking_uri("file:log")
    mlflow.start_run()
    log, end = lambda step, loss: mlflow.log_metric("loss", loss, step=step), mlflow.end_run
else:
    import wandb
    run = wandb.init(project="logged", dir=".")
    end = run.finish
    if way == "wandb-steps":
        log = lambda step, loss: wandb.log({"loss": loss}, step=10 * step)  # noqa: E731
    else:
        log = lambda step, loss: wandb.log({"loss": loss})  # noqa: E731

if any(word.startswith("attach") for word in words):
    import nanquest
    assert nanquest.attach(run_dir="run", level="watch", on_incident="skip", loggers="off" if "attach-off" in words else "on")

if "listens" in words:
    import nanquest
    nanquest.on_incident(lambda incident: print("told of", incident.step, incident.file))

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", enabled="scaled" in words, init_scale=1024.0)
for step in range(8):
    rows = torch.randn(5, 4)
    if step in (3, 5) and "healthy" not in words:
        rows[2, 1] = float("nan")
    optimizer.zero_grad()
    loss = model(rows).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    log(step, loss.item())
    if step == 3 and "explained" in words:
        until = time.monotonic() + 120
        while not glob.glob("run/incidents/*.md") and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.1)
end()
