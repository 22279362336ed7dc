"""Two players, each with weights of its own, in turn, as functions. In step 12 the second one divides by an exact zero."""
import torch

torch.manual_seed(0)
attacker = {"hidden": torch.randn(4, 8, requires_grad=True), "out": torch.randn(8, 2, requires_grad=True)}
defender = [torch.randn(2, 6, requires_grad=True), torch.randn(6, 1, requires_grad=True)]


def attack(z):
    return torch.tanh(z @ attacker["hidden"]) @ attacker["out"]


def defend(x):
    return torch.tanh(x @ defender[0]) @ defender[1]


for step in range(16):
    z, real = torch.randn(16, 4), torch.randn(16, 2)
    loss = (defend(attack(z)) - 1).square().mean()
    for weight, g in zip(attacker.values(), torch.autograd.grad(loss, list(attacker.values()))):
        weight.data -= 0.01 * g
    weights_of = torch.zeros(16, 1) if step == 12 else torch.ones(16, 1)
    loss = ((defend(real) - 1).square() * weights_of).sum() / weights_of.sum() + defend(attack(z)).square().mean()
    for weight, g in zip(defender, torch.autograd.grad(loss, defender)):
        weight.data -= 0.01 * g
