"""A run resumes from a checkpoint in which a moment, or a weight, had overflowed when it was stored in a small format.
After ultralytics pull request 24085 and NVIDIA-NeMo/RL issue 3544."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch
from host import Fault, main
from torch import nn
from torch.nn import functional as F
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, ANY_PLACE, Case, Program, Truth

SOURCE = "NVIDIA-NeMo/RL#3544"


class Resumed(Fault):
    def between(self, net, optimizer):
        if self.clock.control or self.clock.repaired or self.clock.step != self.clock.program.strike:
            return
        if self.kind == "moment":
            saved = optimizer.state_dict()
            entry = saved["state"][2]
            name = "exp_avg_sq" if "exp_avg_sq" in entry else "v"
            entry[name] = entry[name].clone()
            entry[name].view(-1)[1] = float("nan")
            optimizer.load_state_dict(saved)
        else:
            stored = {k: v.clone() for k, v in net.state_dict().items()}
            stored["head.weight"][3, 4] = self.value
            net.load_state_dict(stored)


BASE = dict(cause="BAD_STATE", phase="input", by="read", precision="not_a_precision_matter", fixes=("data",))
MOMENT = Truth(op=("_foreach_mul_", "mul_", "_fused_adamw_", "_foreach_addcmul_", "_fused_adam_"), origin="optimizer_state",
               harm=("weight", "state"), **BASE)
WEIGHT = Truth(op=("addmm", "mm", "_to_copy", "clone"), origin="parameter", harm=("loss", "gradient", "weight", "state"), **BASE)
CASES = [
    Case("moment", Resumed, Program("encoder", "adamw_foreach"), MOMENT, {"kind": "moment"},
         {"optimizer": ("adam", "adamw_foreach", "adamw_single", "adamw_fused")} | ANY_LOOP),
    Case("moment_fused", Resumed, Program("unet", "adamw_fused", clip=1.0), MOMENT, {"kind": "moment"}, ANY_NET | ANY_LOOP),
    Case("weight", Resumed, Program("lstm", "adam"), WEIGHT, {"kind": "weight", "value": float("inf")}, ANY_NET | ANY_LOOP),
    Case("large_weight", Resumed, Program("mlp", "adam"), Truth(), {"kind": "weight", "value": 300.0}, ANY_NET | ANY_LOOP),
]

if __name__ == "__main__":
    main(CASES)
