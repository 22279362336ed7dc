"""Encoder and decoder with cross-attention: text to text, sound to text."""

import torch
import transformers

from . import Task


def _t5():
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu"))

    def batch(generator):
        source = torch.randint(3, 99, (3, 10), generator=generator)
        mask = torch.ones_like(source)
        mask[0, 6:] = 0
        return {"input_ids": source, "attention_mask": mask, "labels": torch.randint(3, 99, (3, 7), generator=generator)}

    return Task(model, batch, lambda m, b: m(**b).loss)


def _whisper():
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=99, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=24,
        decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, dropout=0.1, apply_spec_augment=True,
        mask_time_prob=0.2, mask_time_length=2, begin_suppress_tokens=None, suppress_tokens=None))

    def batch(generator):
        return {"input_features": torch.randn(2, 16, 40, generator=generator),
                "labels": torch.randint(3, 99, (2, 8), generator=generator)}

    return Task(model, batch, lambda m, b: m(**b).loss)


def build(name):
    return {"t5": _t5, "whisper": _whisper}[name]()
