"""A schedule gives a learning rate of NaN or infinity: warm-up over no steps, in numpy."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import math  # noqa: E402

from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, Case, Program, Truth  # noqa: E402

SOURCE = "pytorch/torchtitan #1010, InternLM/xtuner #1285, facebookresearch/schedule_free #5"


class Rate(Fault):
    field, value = "lr", math.nan

    def between(self, net, optimizer):
        for group in optimizer.param_groups:
            group.setdefault("usual", group.get(self.field))
            bad = self.clock.step == self.clock.program.strike and not self.clock.control and not self.clock.repaired
            if group["usual"] is not None:
                group[self.field] = self.value if bad else group["usual"]


WRITES = ("mul_", "_foreach_mul_", "_fused_adamw_", "add_", "_foreach_add_", "addcdiv_", "_foreach_addcdiv_", "mul", "sub_", "_foreach_div_", "div_")
VARY = {**ANY_NET, **ANY_LOOP, "optimizer": ("sgd", "adam", "adamw_single", "adamw_foreach", "hand"), "precision": ("fp32", "bf16")}
SET = Truth(cause="BAD_SETTING", phase="optimizer", op=WRITES, origin="setting", precision="not_a_precision_matter", fixes=("hyperparameter",),
            harm=("weight",), by="setting")
CASES = [
    Case("nan", Rate, Program(), SET, vary=VARY),
    Case("infinite", Rate, Program(net="lstm", optimizer="adam"), SET, {"value": math.inf}, VARY),
    Case("decay", Rate, Program(net="mlp", optimizer="adamw_single"), SET, {"field": "weight_decay"}, {**VARY, "optimizer": ("adamw_single", "adamw_foreach")}),
    Case("zero", Rate, Program(net="cnn"), Truth(), {"value": 0.0}, VARY),
]

if __name__ == "__main__":
    main(CASES)
