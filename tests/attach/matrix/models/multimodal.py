"""Pictures and text together: a contrastive pair of towers, and pictures put between the words."""

import torch
import transformers

from . import Task

IMAGE_TOKEN = 90
VISION = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8)
TEXT = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def _clip():
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=16))

    def batch(generator):
        tokens = torch.randint(3, 99, (3, 8), generator=generator)
        tokens[:, -1] = 2
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens),
                "pixel_values": torch.randn(3, 3, 16, 16, generator=generator), "return_loss": True}

    return Task(model, batch, lambda m, b: m(**b).loss)


def _llava():
    model = transformers.LlavaForConditionalGeneration(transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**TEXT), vision_config=transformers.CLIPVisionConfig(**VISION),
        image_token_index=IMAGE_TOKEN, image_seq_length=4))
    for parameter in model.get_submodule("model.vision_tower").parameters():
        parameter.requires_grad_(False)

    def batch(generator):
        tokens = torch.randint(3, 80, (2, 12), generator=generator)
        tokens[:, 2:6] = IMAGE_TOKEN
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens),
                "pixel_values": torch.randn(2, 3, 16, 16, generator=generator),
                "labels": tokens.masked_fill(tokens == IMAGE_TOKEN, -100)}

    return Task(model, batch, lambda m, b: m(**b).loss)


def build(name):
    return {"clip": _clip, "llava": _llava}[name]()
