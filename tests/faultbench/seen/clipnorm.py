"""The norm of finite gradients overflows, and clipping by it makes zeros of them all."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from truth import ANY_LOOP, ANY_NET, Case, Program, Truth  # noqa: E402

SOURCE = "facebookresearch/fairscale #263, tracel-ai/burn #5699, facebookresearch/fairseq #2384"


class ClipNorm(Fault):
    weight, how, limit = 4000.0, "hand", 1.0

    def batch(self, batch):
        return dict(batch, weight=torch.tensor(self.weight if self.clock.striking else 1.0))

    def loss(self, logits, hidden, batch):
        return super().loss(logits, hidden, batch) * batch["weight"].to(logits.dtype)

    def gradients(self, net, optimizer):
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        if self.how == "library":
            wide = [g.double() for g in grads] if self.clock.repaired else grads
            total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in wide]))
        else:
            total = sum((g.float() if self.clock.repaired else g).pow(2).sum() for g in grads).sqrt()
        coefficient = (self.limit / (total + 1e-3)).clamp(max=1.0)
        for g in grads:
            g.mul_(coefficient.to(g.dtype))


FP16 = {**ANY_LOOP, "net": ("encoder", "lstm", "mlp"), "optimizer": ("sgd", "adam", "adamw_single"), "accumulate": (1,), "noise": (False,)}
FP32 = {**ANY_LOOP, **ANY_NET, "optimizer": ("sgd", "adam", "adamw_foreach", "adamw_single"), "noise": (False,)}
NORM = Truth(cause="NORM_OVERFLOW", phase="optimizer", op=("pow", "sum", "add"), origin="op", precision="curable", value="silent",
             fixes=("precision", "op"), harm=("wrong",))
CASES = [
    Case("half", ClipNorm, Program(precision="fp16", net="mlp"), NORM, vary=FP16),
    Case("single", ClipNorm, Program(), NORM, {"weight": 1e23}, FP32),
    Case("library", ClipNorm, Program(net="lstm"), Truth(**{**vars(NORM), "op": ("linalg_vector_norm",)}), {"weight": 1e24, "how": "library"}, FP32),
    Case("near", ClipNorm, Program(net="cnn"), Truth(), {"weight": 1e14}, FP32),
]

if __name__ == "__main__":
    main(CASES)
