"""A number of the program is infinite, and what it multiplies is zero where a model equals its copy."""
import math
import sys

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
way, infinity = sys.argv[1], float("inf")
net = nn.Linear(8, 1)
copy = [p.detach().clone() for p in net.parameters()]
opt = torch.optim.SGD(net.parameters(), 1e-2)
for step in range(3):
    x = torch.randn(16, 8)
    d = net(x) - F.linear(x, *copy)
    if way == "beta":
        loss = -F.logsigmoid(infinity * d).mean()
    elif way == "tensor":
        loss = -F.logsigmoid(torch.tensor(infinity) * d).mean()
    elif way == "weight":
        loss = net(x).pow(2).mean() + infinity * d.pow(2).mean()
    elif way == "temperature":
        loss = -F.logsigmoid(d * (1 / 1e-320)).mean()
    elif way == "softplus":
        loss = F.softplus(-infinity * d).mean()
    elif way == "divided":
        loss = -F.logsigmoid(d / torch.tensor(0.0)).mean()
    elif way == "alpha":
        loss = torch.add(net(x), d, alpha=infinity).pow(2).mean()
    elif way == "addcmul":
        loss = torch.addcmul(net(x), d, d, value=infinity).mean()
    elif way == "lerp":
        loss = torch.lerp(F.linear(x, *copy), net(x), infinity).pow(2).mean()
    elif way == "exponent":
        loss = (d.abs() * math.inf).tanh().mean()
    elif way == "numpy":
        loss = F.softplus(numpy.float32("inf") * d).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
