"""What programs do around training: workers, threads, h5py, several optimizers, closures, exceptions, compile, vmap."""
import sys
import threading

what = sys.argv[1]
if what == "h5py-before":
    import h5py
import torch
from torch import nn

if what == "h5py-after":
    import h5py

torch.manual_seed(4)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((4,), float(i)), torch.tensor(float(i))


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def step(x, y):
    optimizer.zero_grad()
    loss = (model(x).squeeze(1) - y).square().mean()
    loss.backward()
    optimizer.step()
    return loss


if what == "workers":
    for _ in range(2):
        for x, y in torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2):
            step(x, y)
elif what == "threads":
    other = nn.Linear(4, 1)
    running = threading.Thread(target=lambda: [other(torch.ones(2, 4)).sum().backward() for _ in range(50)])
    running.start()
    for _ in range(5):
        step(torch.randn(3, 4), torch.randn(3))
    running.join()
elif what == "two-optimizers":
    second = nn.Linear(1, 1)
    optimizer2 = torch.optim.AdamW(second.parameters())
    for _ in range(5):
        loss = second(model(torch.randn(3, 4))).square().mean()
        loss.backward()
        optimizer.step()
        optimizer2.step()
        model.zero_grad()
        second.zero_grad()
elif what == "closure":
    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        lbfgs.zero_grad()
        loss = model(torch.ones(3, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        lbfgs.step(closure)
elif what == "exception":
    class Fails(nn.Module):
        def forward(self, x):
            raise RuntimeError("mine")

    failing = nn.Sequential(nn.Linear(4, 4), Fails())
    for _ in range(3):
        try:
            failing(torch.ones(1, 4))
        except RuntimeError as error:
            assert str(error) == "mine"
        step(torch.randn(3, 4), torch.randn(3))
elif what == "vmap":
    from torch.func import functional_call, grad, vmap
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    per_sample = vmap(grad(lambda p, x: functional_call(model, p, (x,)).sum()), in_dims=(None, 0))
    for _ in range(3):
        per_sample(parameters, torch.randn(3, 4))
        step(torch.randn(3, 4), torch.randn(3))
elif what == "compile":
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(4):
        optimizer.zero_grad()
        compiled(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
elif what == "checkpoint":
    from torch.utils.checkpoint import checkpoint
    for _ in range(4):
        optimizer.zero_grad()
        hidden = checkpoint(model[0], torch.randn(3, 4), use_reentrant=False)
        model[2](model[1](hidden)).square().mean().backward()
        optimizer.step()
elif what == "os-exit":
    import os
    step(torch.randn(3, 4), torch.randn(3))
    os._exit(7)
elif what.startswith("h5py"):
    import tempfile
    step(torch.randn(3, 4), torch.randn(3))
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(folder + "/x.h5", "w") as file:
            file["x"] = [1.0, 2.0]
        step(torch.full((3, 4), float("nan")), torch.randn(3))
        with h5py.File(folder + "/x.h5") as file:
            assert list(file["x"][:]) == [1.0, 2.0]
elif what == "none":
    pass
print("done", [float(p.detach().double().sum()) for p in model.parameters()])
