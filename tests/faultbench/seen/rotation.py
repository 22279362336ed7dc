"""The angle of a rotation is acos of a cosine: at the identity its derivative is infinite, a little beyond one it is NaN."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import torch  # noqa: E402
from host import Fault, main  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from truth import ANY_LOOP, ANY_NET, ANY_OPTIMIZER, Case, Program, Truth  # noqa: E402

SOURCE = "facebookresearch/pytorch3d #189, kornia/kornia #4228, serengil/retinaface #15"


class Rotation(Fault):
    cosine, clamp, use = 1.0, False, "acos"

    def batch(self, batch):
        mix = torch.full(batch["y"].shape, 0.5)
        if self.clock.striking:
            mix[1] = 0.0
        return dict(batch, mix=mix)

    def loss(self, logits, hidden, batch):
        loss = super().loss(logits, hidden, batch)
        # The cosine between a pose and its target; a sample that is its own target has cosine `cosine`.
        lean = torch.tanh(hidden.mean((1, 2)))
        mix = batch["mix"].to(lean.dtype)
        cosine = self.cosine - mix * (0.8 + 0.1 * lean)
        if self.clock.repaired:
            cosine = cosine.clamp(-1 + 1e-4, 1 - 1e-4)
        elif self.clamp:
            cosine = cosine.clamp(-1 + 1e-6, 1 - 1e-6)
        angle = {"acos": torch.acos, "root": lambda c: torch.sqrt(1 - c * c), "atan": lambda c: torch.atan2(torch.sqrt(1 - c * c + 1e-6), c)}[self.use](cosine)
        return loss + 0.1 * F.relu(angle).mean()


VARY = {**ANY_NET, **ANY_LOOP, **ANY_OPTIMIZER}
EDGE = Truth(cause="SINGULAR_GRAD", phase="backward", op=("rsqrt",), module=("",), origin="op", precision="structural", value="+inf",
             fixes=("op",), harm=("gradient", "weight", "state"))
CASES = [
    Case("identity", Rotation, Program(), EDGE, vary=VARY),
    Case("root", Rotation, Program(net="lstm"), Truth(**{**vars(EDGE), "op": ("div",), "value": ""}), {"use": "root"}, VARY),
    Case("beyond", Rotation, Program(net="mlp"),
         Truth(cause="DOMAIN", phase="forward", op=("acos",), module=("",), origin="op", precision="structural", value="nan", fixes=("op",),
               harm=("loss", "gradient", "weight", "state")), {"cosine": 1.0000002}, VARY),
    Case("clamped", Rotation, Program(net="cnn"), Truth(), {"clamp": True}, VARY),
    Case("atan2", Rotation, Program(net="unet"), Truth(), {"use": "atan"}, VARY),
]

if __name__ == "__main__":
    main(CASES)
