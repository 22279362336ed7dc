"""A Hamiltonian sampler: thousands of gradients by torch.autograd.grad and never an update; outside of the simplex the density is 0."""
import torch

torch.manual_seed(1)


def potential(position):
    """Of a Dirichlet distribution, with the first shares free."""
    rest = 1 - position.sum()
    shares = torch.cat([position, rest.reshape(1)])
    return torch.where((shares > 0).all(), -shares.clamp(min=1e-30).log().sum(), torch.tensor(torch.inf))


position, outside = torch.full((3,), 0.25), 0
for _ in range(30):
    momentum, at = torch.randn(3), position.clone()
    start = potential(at) + momentum.square().sum() / 2
    for _ in range(5):
        at = at.detach().requires_grad_()
        energy = potential(at)
        outside += not torch.isfinite(energy)
        (slope,) = torch.autograd.grad(energy, at)
        momentum = momentum - 0.05 * slope
        at = at.detach() + 0.05 * momentum
    if torch.rand(()) < torch.exp(start - potential(at) - momentum.square().sum() / 2):
        position = at
assert outside, "no trajectory left the simplex"
energy = potential(position.requires_grad_())
torch.autograd.grad(energy, position)
assert torch.isfinite(energy)
