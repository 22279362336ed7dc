"""One of the healthy trainings: KIND STEPS SEED."""

import sys

import healthy
import healthy_last
import healthy_more
import healthy_unseen
import torch

KINDS = healthy.KINDS | healthy_more.KINDS | healthy_last.KINDS | healthy_unseen.KINDS

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(int(sys.argv[3]))
    KINDS[sys.argv[1]](int(sys.argv[2]))
