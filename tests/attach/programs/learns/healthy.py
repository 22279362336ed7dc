"""healthy.py --list, healthy.py NAME…: small trainings in which weights stay, or get no gradient, for good reasons; each for 60 updates and more."""
import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

STEPS = 64


def mlp(width=16, out=4):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))


def rows(n=32):
    x = torch.randn(n, 8)
    return x, x[:, :4].sin()


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def plain():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x), y))


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = mlp(out=16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.body(x))


def frozen_body():
    model = Split()
    model.body.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x), y))


def body_without_graph():
    model = Split()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        with torch.no_grad():
            h = model.body(x)
        update(optimizer, F.mse_loss(model.head(h), y))


def gan():
    generator, critic = mlp(out=8), mlp(out=1)
    of_generator, of_critic = (torch.optim.Adam(m.parameters(), lr=1e-3) for m in (generator, critic))
    ones = torch.ones(32, 1)
    for _ in range(STEPS):
        real, z = torch.randn(32, 8) + 1, torch.randn(32, 8)
        fake = generator(z)
        bce = F.binary_cross_entropy_with_logits
        update(of_critic, bce(critic(real), ones) + bce(critic(fake.detach()), 0 * ones))
        update(of_generator, bce(critic(fake), ones))


def critic_often():
    generator, critic = mlp(out=8), mlp(out=1)
    of_generator, of_critic = (torch.optim.RMSprop(m.parameters(), lr=1e-4) for m in (generator, critic))
    for step in range(5 * STEPS):
        z = torch.randn(32, 8)
        update(of_critic, critic(generator(z).detach()).mean() - critic(torch.randn(32, 8) + 1).mean())
        if step % 5 == 4:
            update(of_generator, -critic(generator(z)).mean())


def actor_critic():
    policy, value = mlp(out=3), mlp(out=1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)
    for _ in range(STEPS):
        state = torch.randn(16, 8)
        chosen = torch.distributions.Categorical(logits=policy(state))
        action = chosen.sample()
        reward = (action == 0).float() + state[:, 0]
        v = value(state).squeeze(-1)
        update(optimizer, -(chosen.log_prob(action) * (reward - v).detach()).mean() + F.mse_loss(v, reward))


def deep_q():
    model = mlp(out=3)
    target = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        s, n = torch.randn(16, 8), torch.randn(16, 8)
        aim = s[:, 0] + 0.9 * target(n).max(-1)[0].detach()
        update(optimizer, F.smooth_l1_loss(model(s)[:, 0], aim))
        if step % 16 == 15:
            target.load_state_dict(model.state_dict())


class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.a, self.b = base.requires_grad_(False), nn.Linear(base.in_features, 2, bias=False), nn.Linear(2, base.out_features, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def lora():
    model = nn.Sequential(LoRA(nn.Linear(8, 16)), nn.ReLU(), LoRA(nn.Linear(16, 4)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x), y))


def embeddings(sparse):
    model = nn.ModuleDict({"words": nn.Embedding(1000, 8, sparse=sparse), "out": nn.Linear(8, 4)})
    optimizers = [torch.optim.SparseAdam(model["words"].parameters()), torch.optim.Adam(model["out"].parameters())] if sparse else [torch.optim.Adam(model.parameters())]
    for _ in range(STEPS):
        ids = torch.randint(0, 20, (16, 5))
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.mse_loss(model["out"](model["words"](ids).mean(1)), torch.randn(16, 4)).backward()
        for optimizer in optimizers:
            optimizer.step()


def warm_up():
    model = mlp().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0 if step < 20 else (step - 20) / 5000)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x.bfloat16()), y.bfloat16()))
        schedule.step()


class Experts(nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.dense = dense
        self.experts, self.gate = nn.ModuleList(mlp() for _ in range(4)), nn.Linear(8, 4)
        with torch.no_grad():
            self.gate.bias.copy_(torch.tensor([50.0, 50.0, -50.0, -50.0]))

    def forward(self, x):
        share, chosen = self.gate(x).softmax(-1).topk(1)
        if self.dense:
            mask = torch.zeros(len(x), 4).scatter(1, chosen, share)
            return sum(mask[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
        out = torch.zeros(len(x), 4)
        for i, expert in enumerate(self.experts):
            mine = (chosen[:, 0] == i).nonzero()[:, 0]
            if len(mine):
                out = out.index_add(0, mine, share[mine] * expert(x[mine]))
        return out


def experts(dense):
    model = Experts(dense)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x), y))


def hard_gate():
    """The choice has no derivative, and the program knows it: its router stays."""
    model = nn.ModuleDict({"gate": nn.Linear(8, 2), "a": mlp(), "b": mlp()})
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        first = (model["gate"](x).argmax(-1) == 0)[:, None]
        update(optimizer, F.mse_loss(torch.where(first, model["a"](x), model["b"](x)), y))


def accumulation(to_none):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        for _ in range(4):
            x, y = rows()
            (F.mse_loss(model(x), y) / 4).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)


def in_turns():
    model = Split()
    optimizers = torch.optim.Adam(model.body.parameters(), lr=1e-3), torch.optim.SGD(model.head.parameters(), lr=1e-2)
    for step in range(2 * STEPS):
        x, y = rows()
        update(optimizers[step % 2], F.mse_loss(model(x), y))


def two_cadences():
    model = Split()
    often, seldom = torch.optim.Adam(model.head.parameters(), lr=1e-3), torch.optim.Adam(model.body.parameters(), lr=1e-3)
    for step in range(4 * STEPS):
        x, y = rows()
        often.zero_grad()
        F.mse_loss(model(x), y).backward()
        often.step()
        if step % 4 == 3:
            seldom.step()
            seldom.zero_grad()


def unused_pooler():
    model = nn.ModuleDict({"body": nn.Linear(8, 16), "pooler": nn.Linear(16, 16), "head": nn.Linear(16, 4)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        h = model["body"](x)
        model["pooler"](h).tanh()
        update(optimizer, F.mse_loss(model["head"](h), y))


def teacher_in_the_model():
    model = nn.ModuleDict({"student": mlp(), "teacher": mlp()})
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        x, y = rows()
        aim = model["teacher"](x + 0.1).detach()
        out = model["student"](x)
        update(optimizer, F.mse_loss(out, y) + F.mse_loss(out, aim))
        with torch.no_grad():
            for t, s in zip(model["teacher"].parameters(), model["student"].parameters()):
                t.lerp_(s, 0.05)


def loss_network():
    """A network whose features are compared: its weights get gradients that nobody wants."""
    model, features = mlp(out=8), mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x = torch.randn(32, 8)
        update(optimizer, F.mse_loss(features(model(x)), features(x)))


def update_copies(model, copies, optimizer):
    """A pass of the bf16 model, whose gradients update copies of its weights in fp32."""
    x, y = rows()
    F.mse_loss(model(x.bfloat16()), y.bfloat16()).backward()
    for c, p in zip(copies, model.parameters()):
        c.grad, p.grad = p.grad.float(), None
    optimizer.step()


def masters():
    model = mlp().bfloat16()
    copies = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(copies, lr=1e-5)
    for _ in range(STEPS):
        update_copies(model, copies, optimizer)
        with torch.no_grad():
            for c, p in zip(copies, model.parameters()):
                p.copy_(c)


def by_hand():
    model = Split()
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        model.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p in model.body.parameters():
                p -= 0.01 * p.grad


def margin_reached():
    """A hinge that is satisfied: nothing is left to learn."""
    model = mlp(out=1)
    with torch.no_grad():
        model[4].bias.fill_(5.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        update(optimizer, F.relu(1 - model(torch.randn(32, 8))).mean())


def batch_norm_bf16():
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x.bfloat16()), y.bfloat16()))


def evolution():
    """Gradients are made by hand, without a backward pass."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        optimizer.step()


def scaled(first_scale):
    """A scaler that begins far too high: the first updates are skipped."""
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=first_scale)
    for _ in range(STEPS):
        x, y = rows()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def unscaled_fp16():
    """Small, but not at the end of the format."""
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(x).float(), y)
        update(optimizer, loss)


def zeroed_by_hand():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(2 * STEPS):
        x, y = rows()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            if step % 2:
                p.grad = None
            else:
                p.grad.zero_()


def decayed_gradients():
    """Momentum by hand: gradients are not cleared, but made smaller."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.9)
        F.mse_loss(model(x), y).backward()
        optimizer.step()


class Checkpointed(nn.Module):
    """Dropout and running statistics inside of what is computed again."""

    def __init__(self, **settings):
        super().__init__()
        self.part = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, 8))
        self.settings = settings

    def forward(self, x):
        return x + checkpoint(self.part, x, **self.settings)


def checkpointed(dtype=torch.float32, micro_batches=1, **settings):
    model = nn.Sequential(nn.Linear(8, 8), Checkpointed(**settings), Checkpointed(**settings), nn.Linear(8, 4)).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(micro_batches):
            x, y = rows()
            F.mse_loss(model(x.to(dtype)), y.to(dtype)).backward()
        optimizer.step()


def averaged(decay, of_average):
    """An average of a model in bf16 that moves: it is in fp32, or its decay lets it."""
    model = mlp().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    average = [p.detach().to(of_average) for p in model.parameters()]
    for _ in range(STEPS):
        x, y = rows()
        update(optimizer, F.mse_loss(model(x.bfloat16()), y.bfloat16()))
        with torch.no_grad():
            for a, p in zip(average, model.parameters()):
                a.lerp_(p.to(of_average), 1 - decay)


def all_gathered():
    """Weights in bf16 that are written from those in fp32, and stay for long: they are no average."""
    model = mlp().bfloat16()
    copies = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    served = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(copies, lr=1e-6)
    for _ in range(STEPS):
        update_copies(model, copies, optimizer)
        with torch.no_grad():
            for c, p, s in zip(copies, model.parameters(), served):
                p.copy_(c)
                s.copy_(c + 1)


def reference_in_bf16():
    """Another model's answers are wanted, and it stays on purpose."""
    model = mlp().bfloat16()
    reference = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        x, _ = rows()
        update(optimizer, F.mse_loss(model(x.bfloat16()), reference(x.bfloat16()) + 1))


HEALTHY = {
    "average_in_fp32": lambda: averaged(0.9999, torch.float32),
    "fast_average": lambda: averaged(0.9, torch.bfloat16),
    "all_gathered": all_gathered,
    "reference_in_bf16": reference_in_bf16,
    "checkpointed": lambda: checkpointed(use_reentrant=False),
    "checkpointed_whole": lambda: checkpointed(use_reentrant=True),
    "checkpointed_bf16": lambda: checkpointed(torch.bfloat16, micro_batches=3, use_reentrant=False),
    "checkpointed_unchecked": lambda: checkpointed(use_reentrant=False, determinism_check="none"),
    "plain": plain,
    "frozen_body": frozen_body,
    "body_without_graph": body_without_graph,
    "gan": gan,
    "critic_often": critic_often,
    "actor_critic": actor_critic,
    "deep_q": deep_q,
    "lora": lora,
    "embeddings": lambda: embeddings(sparse=False),
    "sparse_embeddings": lambda: embeddings(sparse=True),
    "warm_up": warm_up,
    "experts": lambda: experts(dense=False),
    "dense_experts": lambda: experts(dense=True),
    "hard_gate": hard_gate,
    "accumulation": lambda: accumulation(to_none=True),
    "accumulation_zeros": lambda: accumulation(to_none=False),
    "in_turns": in_turns,
    "two_cadences": two_cadences,
    "unused_pooler": unused_pooler,
    "teacher_in_the_model": teacher_in_the_model,
    "loss_network": loss_network,
    "masters": masters,
    "by_hand": by_hand,
    "margin_reached": margin_reached,
    "batch_norm_bf16": batch_norm_bf16,
    "evolution": evolution,
    "scaled": lambda: scaled(2.0**16),
    "scaled_too_high": lambda: scaled(2.0**40),
    "unscaled_fp16": unscaled_fp16,
    "zeroed_by_hand": zeroed_by_hand,
    "decayed_gradients": decayed_gradients,
}
if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        sys.exit(print(*HEALTHY))
    for name in sys.argv[1:]:
        torch.manual_seed(7)
        HEALTHY[name]()
        print(name, flush=True)
