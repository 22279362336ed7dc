"""The same by torch.func: forces of a fixed potential at new points."""
import torch
from torch.func import grad, vmap

torch.manual_seed(0)
weight = torch.randn(3, 3)
force = vmap(grad(lambda point: (point @ weight.abs()).sqrt().sum()))
for step in range(16):
    points = torch.rand(8, 3)
    if step == 12:
        points[2] = 0
    found = force(points)
    assert step != 12 or not torch.isfinite(found).all()
