"""Plain training programs around a fault. They know nothing of any tool.

    python unseen/FAMILY.py VARIANT [--set net=cnn --set strike=6 ...]     runs one program
    python unseen/FAMILY.py --list                                         names the variants
"""

import argparse
import contextlib
import dataclasses

import torch
from torch.nn import functional as F

import nets
from optimizers import make_optimizer

PARAMETERS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}
AUTOCAST = {"autocast_fp16": torch.float16, "autocast_bf16": torch.bfloat16}


class Clock:
    """Where the loop is. `striking` is true in the last micro-batch of the step of the fault (never in a control run)."""

    def __init__(self, program, control=False, repaired=False):
        self.program, self.control, self.repaired = program, control, repaired
        self.step = self.micro = 0
        self.batch = None

    @property
    def striking(self):
        last = self.micro == self.program.accumulate - 1
        return not self.control and self.step == self.program.strike and last

    @property
    def struck(self):
        return not self.control and self.step >= self.program.strike


class Fault:
    """A family overrides what it needs; what it does not override is a healthy program."""

    def __init__(self, clock, **settings):
        self.clock = clock
        self.__dict__.update(settings)

    def part(self, width):
        """A module put at the program's place; called with [batch, tokens, width]."""
        return None

    def prepare(self, net):
        """Once, before the optimizer is made."""

    def batch(self, batch):
        """The loader's last act: x [batch, tokens, features], ids [batch, tokens], y [batch]."""
        return batch

    def loss(self, logits, hidden, batch):
        return F.cross_entropy(logits, batch["y"])

    def optimizer(self, net):
        """An optimizer of the family's own, or None."""
        return None

    def scaler(self):
        """A scaler of the family's own, or None."""
        return None

    def between(self, net, optimizer):
        """Before each step: resuming from a checkpoint, swapping weights."""

    def before_step(self, net, optimizer):
        """After backward, before unscaling, clipping and the update."""

    def gradients(self, net, optimizer):
        """After unscaling, before the update; where hand-made clipping and surgery go."""

    def after_step(self, net, optimizer):
        """After the update: schedules, shadow copies."""


class Loop:
    """One run of one program. `watch` is for check_truth.py alone."""

    def __init__(self, case, control=False, repaired=False, precision=None):
        self.program = case.program if precision is None else dataclasses.replace(case.program, precision=precision)
        self.clock = Clock(self.program, control, repaired)
        torch.manual_seed(self.program.seed)
        self.fault = case.fault(self.clock, **case.settings)
        self.dtype = PARAMETERS.get(self.program.precision, torch.float32)
        self.net = nets.NETS[self.program.net]()
        part = self.fault.part(nets.WIDTH)
        if part is not None:
            getattr(self.net, self.program.place).inner = part
        self.net.to(self.dtype)
        self.fault.prepare(self.net)
        self.optimizer = self.fault.optimizer(self.net) or make_optimizer(self.program, self.net.parameters())
        self.scaled = self.program.precision == "autocast_fp16"
        self.scaler = self.fault.scaler() or torch.amp.GradScaler("cpu", init_scale=2.0**8, enabled=self.scaled)
        self.data = torch.Generator().manual_seed(100 + self.program.seed)
        self.prototypes = torch.randn(nets.CLASSES, nets.TOKENS, nets.FEATURES, generator=self.data)
        self.region, self.losses = "", []
        self.dataset = {}
        for self.clock.step in range(self.program.strike + 1 + self.program.after):
            for self.clock.micro in range(self.program.accumulate):
                self.dataset[self.clock.step, self.clock.micro] = self.make_batch()
        self.clock.step = self.clock.micro = 0

    def make_batch(self):
        """A batch that can be learnt; the same values in every format. All of them are in memory before the first step."""
        size, noise = self.program.batch, self.program.noise
        y = torch.randint(nets.CLASSES, (size,), generator=self.data)
        x = self.prototypes[y] + 0.3 * torch.randn(size, nets.TOKENS, nets.FEATURES, generator=self.data)
        if noise and self.clock.step % 2:
            x[0, 0, 0] = 40.0 * (1 + self.clock.step % 3)
        ids = torch.randint(nets.VOCABULARY, (size, nets.TOKENS), generator=self.data)
        return self.fault.batch({"x": x.to(self.dtype), "ids": ids, "y": y})

    def forward_backward(self):
        self.region = "forward"
        kind = AUTOCAST.get(self.program.precision)
        with torch.autocast("cpu", dtype=kind, enabled=True) if kind else contextlib.nullcontext():
            logits, hidden = self.net(self.clock.batch)
            loss = self.fault.loss(logits, hidden, self.clock.batch)
        loss = loss / self.program.accumulate if self.program.accumulate > 1 else loss
        self.losses.append(loss.detach())
        self.region = "backward"
        self.scaler.scale(loss).backward()

    def update(self):
        self.region = "optimizer"
        self.fault.before_step(self.net, self.optimizer)
        if self.scaler.is_enabled():
            self.scaler.unscale_(self.optimizer)
        self.fault.gradients(self.net, self.optimizer)
        if self.program.clip:
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.program.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.fault.after_step(self.net, self.optimizer)
        self.region = ""

    def begin(self):
        """What happens between two steps."""
        self.fault.between(self.net, self.optimizer)

    def step(self, between=None):
        """One optimizer step. `between` is called after the last backward."""
        self.losses = []
        self.optimizer.zero_grad()
        for self.clock.micro in range(self.program.accumulate):
            self.clock.batch = self.dataset[self.clock.step, self.clock.micro]
            self.forward_backward()
        if between is not None:
            between()
        self.update()
        return float(sum(self.losses))

    def run(self, quiet=False):
        for self.clock.step in range(self.program.strike + 1 + self.program.after):
            self.begin()
            loss = self.step()
            if not quiet:
                print(f"step {self.clock.step} loss {loss:.4f}", flush=True)


def varied(case, changes):
    """The case with other values of its program's fields."""
    fields = {f.name: type(getattr(case.program, f.name)) for f in dataclasses.fields(case.program)}
    typed = {k: (v == "True" if fields[k] is bool else fields[k](v)) if isinstance(v, str) else v for k, v in changes.items()}
    return dataclasses.replace(case, program=dataclasses.replace(case.program, **typed))


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    arguments = parser.parse_args()
    if arguments.list or arguments.variant is None:
        print(*(case.name for case in cases), sep="\n")
        return
    torch.set_num_threads(1)
    case = next(case for case in cases if case.name == arguments.variant)
    Loop(varied(case, dict(s.split("=", 1) for s in arguments.set))).run()
