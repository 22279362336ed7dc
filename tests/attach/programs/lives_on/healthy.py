"""Between its updates this program does what programs do, and nothing that lives on goes bad: argv[1] says what."""
import copy, sys, torch, torch.nn as nn
torch.manual_seed(0)
what = sys.argv[1]
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
twin = copy.deepcopy(net)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 20 if what == "calibrates" else 256.0)
average = {name: value.detach().clone() for name, value in net.state_dict().items() if value.is_floating_point()}
norms, best, total, monitor = [], torch.full((4,), float("inf")), torch.zeros(()), torch.zeros(16)
for step in range(24):
    x = torch.randn(32, 8)
    if what == "holes":  # missing values, which the program replaces
        x[torch.rand(32, 8) < 0.1] = float("nan")
        x = x.nan_to_num()
    with torch.autocast("cpu", torch.float16):
        loss = (net(x) - x[:, :4]).pow(2).mean()
    opt.zero_grad(set_to_none=step % 2 == 0)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    norms.append(norm)                                   # infinite where the scale overflows
    if what == "monitors":
        monitor.copy_(net[0].bias.grad / (net[0].bias - net[0].bias))
        kept = [p.grad / torch.zeros_like(p) for p in net.parameters()]
    scaler.step(opt)
    scaler.update()
    with torch.no_grad():
        if what == "average":
            for name, value in net.state_dict().items():
                if value.is_floating_point():
                    average[name].mul_(0.9).add_(value, alpha=0.1)
        if what == "swaps" and step % 4 == 3:
            twin.load_state_dict(net.state_dict())
            net[0].weight.div_(net[0].weight.norm(dim=1, keepdim=True))
            twin.half(); twin.float()
        if what == "masks":
            mask = torch.full((8, 8), float("-inf")).triu(1)
            best = torch.minimum(best, loss.detach().expand(4))
            total += torch.log(torch.zeros(())) * 0 if False else loss.detach()
            ratio = [p / (p - p) for p in net.parameters()]  # looked at by nobody
        if what == "evaluates":
            net.eval(); bad = net(torch.full((4, 8), float("nan"))); net.train()
