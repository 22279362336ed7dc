"""What lives on goes bad in one step, each time in another way: argv[1] says how. The last argument of `bad` is what a test asks for."""
import copy, sys, torch, torch.nn as nn
torch.manual_seed(0)
what, BAD = sys.argv[1], 9
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
net.register_buffer("calls", torch.ones(3))
teacher = copy.deepcopy(net).requires_grad_(False)
average = [p.detach().clone() for p in net.parameters()]
half = {name: p.detach().half() for name, p in net.named_parameters()}
opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)


class Smoothed:
    """Gradients smoothed over time, in an object of its own."""
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.mean = [torch.zeros_like(p) for p in self.parameters]

    def smooth(self):
        for p, m in zip(self.parameters, self.mean):
            m.lerp_(p.grad, 0.5)
            p.grad.copy_(m)


smoothed = Smoothed(net.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=64.0, enabled=what in ("smoothed", "counter"))
for step in range(20):
    x = torch.randn(32, 8) * (1e5 if step == BAD and what in ("smoothed", "counter") else 1)
    with torch.autocast("cpu", torch.float16, enabled=scaler.is_enabled()):
        loss = (net(x) - x[:, :4].clamp(-1, 1)).pow(2).mean()
    opt.zero_grad(); scaler.scale(loss).backward()
    if what == "smoothed": scaler.unscale_(opt); smoothed.smooth()
    if what == "counter": net.calls.mul_(0.5).add_(sum(p.grad.norm() for p in net.parameters()))
    scaler.step(opt); scaler.update()
    with torch.no_grad():
        if what == "teacher":                           # an average in a module that is never called
            for t, p in zip(teacher.parameters(), net.parameters()):
                t.mul_(0.9).add_(p / (0.0 if step == BAD and p.dim() == 1 else 1.0), alpha=0.1)
        if what == "list":                              # an average in a list
            for a, p in zip(average, net.parameters()):
                a.lerp_(p / (p * 0 if step == BAD else 1), 0.1)
        if what == "half":                              # copies in fp16
            for name, p in net.named_parameters():
                half[name].copy_(p * (1e6 if step == BAD else 1))
        if what == "pruned":                            # weights by hand, the buffer of a batch norm
            net[1].running_var.div_(net[1].running_var * (step != BAD))
        if what == "moments":                           # the optimizer's own state
            for state in opt.state.values():
                state["momentum_buffer"].div_(0.0 if step == BAD else 1.0)
