"""A loader writes its next batch into the memory of this one while the step is still reading it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "libffcv/ffcv #37"


class Loader(Fault):
    """The batch is numpy memory; half a decoded record is in it when the loss reads it once more."""

    copied = False

    def batch(self, batch):
        view = batch["x"].float().mean(-1)
        return dict(batch, view=torch.from_numpy(view.numpy().copy()))

    def loss(self, logits, hidden, batch):
        view = batch["view"]
        if self.copied or self.clock.repaired:
            view = view.clone()
        first = view.mean(1).to(logits.dtype)
        loss = super().loss(logits, hidden, batch) + 0.1 * (torch.tanh(hidden.mean((1, 2))) - first).pow(2).mean()
        if self.clock.striking:
            batch["view"].numpy()[1, 4:9] = float("nan")
        spread = view.std(1).to(logits.dtype)
        return loss + 0.1 * (torch.tanh(hidden.mean((1, 2))) - spread).pow(2).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER}
CHANGED = Truth(cause="RACE", phase="forward", op=("std", "var"), module=("",), origin="input", precision="not_a_precision_matter", fixes=("data", "op"),
                harm=("loss", "gradient", "weight", "state"), by="host")
CASES = [
    Case("refilled", Loader, Program(), CHANGED, vary=VARY),
    Case("copied", Loader, Program(net="lstm"), Truth(), {"copied": True}, VARY),
]

if __name__ == "__main__":
    main(CASES)
