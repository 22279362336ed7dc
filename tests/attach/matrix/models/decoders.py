"""Language models of transformers that read from left to right."""

import torch
import transformers

from . import Task

VOCABULARY = 99
SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GROUPED = dict(SMALL, num_key_value_heads=2)


def _configuration(name):
    if name == "gpt2":
        return transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1,
                                       eos_token_id=2)
    return {
        "llama": lambda: transformers.LlamaConfig(**GROUPED),
        "mistral": lambda: transformers.MistralConfig(**GROUPED, sliding_window=6),
        "qwen2": lambda: transformers.Qwen2Config(**GROUPED, attention_dropout=0.1),
        "qwen3": lambda: transformers.Qwen3Config(**GROUPED, head_dim=8),
        "gemma": lambda: transformers.GemmaConfig(**GROUPED, head_dim=8),
        "phi": lambda: transformers.PhiConfig(**SMALL, resid_pdrop=0.1, embd_pdrop=0.1),
        "mixtral": lambda: transformers.MixtralConfig(**GROUPED, num_local_experts=4, num_experts_per_tok=2,
                                                      output_router_logits=True),
    }[name]()


def build(name):
    model = transformers.AutoModelForCausalLM.from_config(_configuration(name))

    def batch(generator):
        tokens = torch.randint(3, VOCABULARY, (3, 12), generator=generator)
        mask = torch.ones_like(tokens)
        mask[1, 9:] = 0
        return {"input_ids": tokens, "attention_mask": mask, "labels": tokens.masked_fill(mask == 0, -100)}

    return Task(model, batch, lambda m, b: m(**b).loss)
