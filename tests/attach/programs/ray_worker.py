"""Two Ray Train workers under DistributedDataParallel; in step 3 a sample of rank 1 holds NaN, if BAD is 1.

usage: ray_worker.py STORAGE BAD
"""

import sys

import ray
import ray.train.torch
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def train(config):
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rank = ray.train.get_context().get_world_rank()
    torch.manual_seed(10 + rank)
    for step in range(5):
        x, y = torch.randn(6, 8), torch.randint(0, 2, (6,))
        if config["bad"] and step == 3 and rank == 1:
            x[2, 3] = float("nan")
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ray.train.report({"loss": loss.item()})


storage, bad = sys.argv[1:]
ray.init(num_cpus=2, include_dashboard=False)
TorchTrainer(train, train_loop_config={"bad": bad == "1"}, scaling_config=ScalingConfig(num_workers=2),
             run_config=RunConfig(storage_path=storage)).fit()
