"""Training habits of the matrix: what programs do beside forward, backward and update.

Each changes one thing of the plain loop in program.py; `a+b` is both.
"""

import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

NAMES = ("plain", "checkpoint", "checkpoint-reentrant", "accumulate", "clip", "clip-value", "zero-in-place", "sdpa-math",
         "sdpa-flash", "eager-attention", "workers", "scheduler", "average", "evaluate", "freeze", "noise", "penalty",
         "two-groups")


class Stream(torch.utils.data.IterableDataset):
    """Batches as a data loader's workers make them."""

    def __init__(self, make, seed):
        self.make, self.seed = make, seed

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        number, of = (worker.id, worker.num_workers) if worker else (0, 1)
        while True:
            yield self.make(torch.Generator().manual_seed(self.seed + number))
            number += of


class Habits:
    def __init__(self, names, task):
        unknown = set(names) - set(NAMES)
        if unknown:
            raise SystemExit(f"no habit is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
        self.names, self.task = set(names), task
        self.micro_batches = 2 if "accumulate" in names else 1
        self.average = torch.optim.swa_utils.AveragedModel(task.model) if "average" in names else None
        if self.names & {"checkpoint", "checkpoint-reentrant"}:
            self._checkpoint("checkpoint-reentrant" in names)
        if "eager-attention" in names:
            task.model.set_attn_implementation("eager")
        if "freeze" in names:
            for parameter in list(task.model.parameters())[:2]:
                parameter.requires_grad_(False)

    def _checkpoint(self, reentrant):
        model = self.task.model
        if hasattr(model, "gradient_checkpointing_enable"):
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
            return
        for part in model.children():
            run = part.forward
            part.forward = lambda *a, run=run: checkpoint(run, *a, use_reentrant=reentrant)

    def batches(self, seed):
        stream = Stream(self.task.batch, seed)
        workers = 2 if "workers" in self.names else 0
        return iter(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers))

    def groups(self):
        trained = [p for p in self.task.model.parameters() if p.requires_grad]
        if "two-groups" not in self.names:
            return trained
        return [{"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.1},
                {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0, "lr": 5e-4}]

    def scheduler(self, optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, 20) if "scheduler" in self.names else None

    def around_forward(self):
        for name, backend in (("sdpa-math", SDPBackend.MATH), ("sdpa-flash", SDPBackend.FLASH_ATTENTION)):
            if name in self.names:
                return sdpa_kernel(backend)
        return contextlib.nullcontext()

    def before_forward(self, batch):
        if "noise" not in self.names:
            return batch
        return {k: v + torch.randn_like(v) * 0.01 if isinstance(v, torch.Tensor) and v.is_floating_point() else v
                for k, v in batch.items()}

    def of_loss(self, loss):
        if "penalty" in self.names:
            trained = [p for p in self.task.model.parameters() if p.requires_grad]
            gradients = torch.autograd.grad(loss, trained, create_graph=True, allow_unused=True)
            loss = loss + 0.01 * sum(g.square().sum() for g in gradients if g is not None)
        return loss / self.micro_batches

    def before_update(self):
        if "clip" in self.names:
            torch.nn.utils.clip_grad_norm_(self.task.model.parameters(), 0.5)
        if "clip-value" in self.names:
            torch.nn.utils.clip_grad_value_(self.task.model.parameters(), 0.05)

    def after_update(self, batch):
        if self.average is not None:
            self.average.update_parameters(self.task.model)
        if "evaluate" in self.names:
            self.task.model.eval()
            with torch.no_grad():
                self.task.loss(self.task.model, batch)
            self.task.model.train()
