"""Small models with random weights, of every family and rope type: their configurations and construction."""

import random

import torch
import transformers

VOCABULARY, CONTEXT, PADDING = 97, 48, 3

ROPES = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    "llama3": {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
    "yarn": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 12},
    "yarn_scaled": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 12,
                    "mscale": 0.7, "mscale_all_dim": 0.4, "beta_fast": 8.0, "beta_slow": 2.0, "truncate": False},
}


def common(rng, head_width=None):
    """Sizes of a small decoder, with heads that are shared by some queries or not."""
    keys, shared = rng.choice([1, 2]), rng.choice([1, 2, 3])
    width = head_width or rng.choice([8, 16])
    return {"vocab_size": VOCABULARY, "hidden_size": keys * shared * width, "num_attention_heads": keys * shared,
            "num_key_value_heads": keys, "num_hidden_layers": 3, "intermediate_size": rng.choice([24, 40]),
            "max_position_embeddings": CONTEXT, "initializer_range": 0.1, "eos_token_id": 1, "bos_token_id": 2,
            "pad_token_id": PADDING}


def wide(rng):
    """A head width that is not hidden_size / heads."""
    return {**common(rng, 16), "hidden_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}


def configurations(seed):
    """name -> configuration."""
    rng = random.Random(seed)
    t = transformers
    found = {f"llama_{rope}": t.LlamaConfig(**common(rng), rope_parameters=dict(ROPES[rope])) for rope in ROPES}
    # longer than the original context: the frequencies depend on the length
    found["llama_dynamic"] = t.LlamaConfig(**{**common(rng), "max_position_embeddings": 16},
                                           rope_parameters=dict(ROPES["dynamic"]))
    found["llama_biases"] = t.LlamaConfig(**wide(rng), attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
    found["mistral"] = t.MistralConfig(**common(rng), sliding_window=None)
    found["mistral_window"] = t.MistralConfig(**common(rng), sliding_window=5)
    found["mixtral"] = t.MixtralConfig(**common(rng), num_local_experts=4, num_experts_per_tok=2, sliding_window=None)
    found["qwen2"] = t.Qwen2Config(**common(rng))
    found["qwen2_window"] = t.Qwen2Config(**common(rng), use_sliding_window=True, sliding_window=6, max_window_layers=1,
                                          tie_word_embeddings=True)
    found["qwen3"] = t.Qwen3Config(**wide(rng), attention_bias=True)
    found["qwen3_yarn"] = t.Qwen3Config(**wide(rng), rope_parameters=dict(ROPES["yarn"]))
    found["gemma"] = t.GemmaConfig(**wide(rng))
    found["gemma2"] = t.Gemma2Config(**wide(rng), sliding_window=4, query_pre_attn_scalar=20,
                                     attn_logit_softcapping=1.5, final_logit_softcapping=3.0)
    found["gemma2_uncapped"] = t.Gemma2Config(**wide(rng), sliding_window=7, attn_logit_softcapping=None,
                                              final_logit_softcapping=None)
    found["gemma3"] = t.Gemma3TextConfig(**wide(rng), sliding_window=5, layer_types=["sliding_attention"] * 2 +
                                         ["full_attention"], rope_parameters={
                                             "full_attention": dict(ROPES["linear"]),
                                             "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}})
    gpt2 = {"vocab_size": VOCABULARY, "n_embd": 24, "n_layer": 3, "n_head": 3, "n_positions": CONTEXT,
            "initializer_range": 0.1, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    found["gpt2"] = t.GPT2Config(**gpt2)
    found["gpt2_scaled"] = t.GPT2Config(**gpt2, n_inner=40, activation_function="relu", tie_word_embeddings=False,
                                        scale_attn_by_inverse_layer_idx=True)
    return found


IMAGE = 90  # the token at whose places images are inserted


def llavas(seed):
    """name -> configuration of a LLaVA."""
    rng = random.Random(seed)
    t = transformers
    vision = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 12,
              "patch_size": 4, "projection_dim": 16, "initializer_range": 0.1}
    made = {"llava": {"text_config": t.LlamaConfig(**common(rng))},
            "llava_full": {"text_config": t.Qwen2Config(**common(rng)), "vision_feature_select_strategy": "full",
                           "vision_feature_layer": [-1, 0, 2], "projector_hidden_act": "gelu_new", "multimodal_projector_bias": False},
            "llava_mistral": {"text_config": t.MistralConfig(**common(rng), sliding_window=8), "vision_feature_layer": 1}}
    return {name: t.LlavaConfig(vision_config=t.CLIPVisionConfig(**{**vision, "hidden_act": "gelu" if "mistral" in name else "quick_gelu"}),
                                image_token_index=IMAGE, **more) for name, more in made.items()}


def image_tokens(config):
    """Number of tokens of an image."""
    return (config.vision_config.image_size // config.vision_config.patch_size) ** 2 + (config.vision_feature_select_strategy == "full")


def make(config, seed):
    """The model with all weights random (also norms and biases); in eval mode."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    kind = transformers.AutoModelForImageTextToText if config.model_type == "llava" else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    return model.eval()
