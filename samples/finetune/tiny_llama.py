"""A small Llama folder with random weights, its tokenizer and chat template, and chats to fine-tune it on. Nothing is downloaded.

    pip install transformers
    python samples/finetune/tiny_llama.py models/tiny-llama chats.jsonl

Large models have a few activations that are thousands of times larger than all others, at some tokens only. So has this one: at the
letter "ж" one number that model.layers.0.mlp.down_proj computes is 160000. fp32 and bf16 can hold it, fp16 ends at 65504. One of
the chats has the letter.
"""
import json
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from outlier import give_outlier

TEMPLATE = ("{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty".split()
NUMBERS = ONES + [ten + (f"-{one}" if one != "zero" else "") for ten in TENS for one in ONES[:10]]
RARE = "ж"


def chats():
    """Questions about numbers, and one with a letter that no other question has."""
    pairs = list(zip(NUMBERS, NUMBERS[1:]))
    asked = [(f"What comes after {a}?", f"{b}.") for a, b in pairs] + [(f"What comes before {b}?", f"{a}.") for a, b in pairs]
    asked.insert(40, (f"What is {RARE}?", "A letter."))
    return [{"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]} for question, answer in asked]


def tokenizer_of(texts):
    """Byte-level, as GPT-2's and Llama 3's."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def model_for(tokenizer):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=128, initializer_range=0.1, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id))
    token = tokenizer.encode(RARE, add_special_tokens=False)[0]
    with torch.no_grad():
        # A direction of the residual stream that only this token has: the norm makes it 8, a neuron 200 * 200, down_proj four times that.
        give_outlier(model.model)
        model.model.embed_tokens.weight[token, 0] = 50
    return model


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} MODEL_FOLDER CHATS.jsonl")
    folder, file = map(pathlib.Path, sys.argv[1:])
    lines = chats()
    tokenizer = tokenizer_of([m["content"] for line in lines for m in line["messages"] if RARE not in m["content"]])
    tokenizer.save_pretrained(folder)
    model_for(tokenizer).save_pretrained(folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    print(f"{folder}: a Llama with {len(tokenizer)} tokens; {file}: {len(lines)} chats")


if __name__ == "__main__":
    main()
