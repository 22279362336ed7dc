"""Trains one model of the matrix for six steps, of which step BAD has one fault planted.

usage: fault_program.py CASE LEVEL RUN_DIR     # LEVEL "off": without the probe
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "matrix")]

import program  # noqa: E402, of the matrix: it also keeps transformers quiet and off the network
import numpy  # noqa: E402
import torch  # noqa: E402

import cases  # noqa: E402
import faults  # noqa: E402
import habits as habits_  # noqa: E402
import models  # noqa: E402
import optimizers  # noqa: E402

STEPS = 6


class Training:
    """One model in training, and what a fault may change of it."""

    def __init__(self, spec):
        model, optimizer, precision, habits = spec.split("/")
        torch.manual_seed(7)
        numpy.random.seed(7)
        self.task = models.build(model)
        self.model = self.task.model.train()
        self.habits = habits_.Habits(habits.split("+"), self.task)
        self.optimizer = optimizers.OPTIMIZERS[optimizer](self.habits.groups())
        self.dtype = program.PRECISIONS[precision]
        self.scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16", init_scale=256.0)
        self.step = 0
        self.before_bad = lambda: None               # runs between the last healthy step and the bad one
        self.change_batch = lambda batch: batch      # of the bad step's last micro-batch
        self.change_loss = lambda loss, model, batch: loss

    def make_step(self, batches):
        last = self.habits.micro_batches - 1
        self.optimizer.zero_grad()
        for micro in range(last + 1):
            batch, bad = next(batches), self.step == faults.BAD and micro == last
            if bad:
                batch = self.change_batch(batch)
            with torch.autocast("cpu", self.dtype or torch.bfloat16, enabled=self.dtype is not None):
                loss = self.task.loss(self.model, batch)
                if bad:
                    loss = self.change_loss(loss, self.model, batch)
            self.scaler.scale(self.habits.of_loss(loss)).backward()
        if "clip" in self.habits.names:
            self.scaler.unscale_(self.optimizer)
        self.habits.before_update()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def run(self):
        batches = self.habits.batches(seed=100)
        for self.step in range(STEPS):
            if self.step == faults.BAD:
                self.before_bad()
            self.make_step(batches)


def main():
    name, level, run_dir = sys.argv[1:]
    torch.set_num_threads(1)
    case = cases.named(name)
    training = Training(case.spec)
    faults.FAULTS[case.fault](training, case.at)
    if level != "off":
        import nanquest
        # Only the first incident's file is wanted; no step is watched at level trace, so that the standing trace records.
        if not nanquest.attach(run_dir, level, watch_first=0, watch_every=0, max_incidents=1,
                               keep_percent=1000000):
            raise SystemExit("the probe did not attach")
    training.run()


if __name__ == "__main__":
    main()
