"""Mamba by its plain PyTorch path: a scan over the sequence, one step after the other."""

import torch
import transformers

from . import Task


def build(name):
    model = transformers.MambaForCausalLM(transformers.MambaConfig(
        vocab_size=99, hidden_size=32, state_size=4, num_hidden_layers=2, conv_kernel=4, bos_token_id=1, eos_token_id=2,
        pad_token_id=0))

    def batch(generator):
        tokens = torch.randint(3, 99, (2, 8), generator=generator)
        return {"input_ids": tokens, "labels": tokens}

    return Task(model, batch, lambda m, b: m(**b).loss)
