"""Models of transformers that see everything at once: text with masks, pictures in patches."""

import torch
import transformers

from . import Task


def _bert():
    model = transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64))

    def batch(generator):
        tokens = torch.randint(3, 99, (3, 12), generator=generator)
        mask = torch.ones_like(tokens)
        mask[2, 7:] = 0
        hidden = torch.rand(tokens.shape, generator=generator) < 0.3
        hidden[:, 0] = True
        return {"input_ids": tokens.masked_fill(hidden, 1), "attention_mask": mask,
                "labels": tokens.masked_fill(~hidden, -100)}

    return Task(model, batch, lambda m, b: m(**b).loss)


def _vit():
    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        num_labels=5, hidden_dropout_prob=0.1))

    def batch(generator):
        return {"pixel_values": torch.randn(3, 3, 16, 16, generator=generator),
                "labels": torch.randint(0, 5, (3,), generator=generator)}

    return Task(model, batch, lambda m, b: m(**b).loss)


def build(name):
    return {"bert": _bert, "vit": _vit}[name]()
