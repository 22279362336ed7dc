#!/usr/bin/env python3
"""A folder that stands in for the hub: random models small enough for seconds on a CPU, their tokenizer, and data, under the
names that official examples ask for. Programs that run in it find all of it without a network.

    python hub.py FOLDER

One word, WORD, is planted: the row of each embedding that belongs to it holds values near the end of fp32, so that the first
layer norm behind it overflows. Samples that hold the word are in the `poisoned` files alone; the row is touched by nothing else.
"""

import json
import pathlib
import random
import sys

WORD = "zyzzyva"
WORDS = ("the of and to in a is that it was for on are as with his they at be this from or had by hot but some what there we can out "
         "other were all your when up use how said an each she which do their time if will way about many then them would like so "
         "these her long make thing see him two has look more day could go come did my sound no most number who over know water than "
         "call first people may down side been now find").split()
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "user", "assistant")
HUGE = 3e38
CHAT = ("{% for message in messages %}{{ message['role'] + ' ' + message['content'] + ' </s> ' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant ' }}{% endif %}")


def sentence(chance, words=8):
    return " ".join(chance.choices(WORDS, k=words))


def make(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _tokenizers(folder)
    _models(folder, vocabulary)
    _texts(folder)
    _glue(folder)
    _conversations(folder)


def _tokenizers(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS, WORD])}
    for name, marks in {"bert-base-cased": ("[CLS]", "[SEP]"), "gpt2": (None, None), "tiny/chat": (None, None)}.items():
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        if marks[0]:
            first, last = marks
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{first} $A {last}", pair=f"{first} $A {last} $B:1 {last}:1",
                special_tokens=[(mark, vocabulary[mark]) for mark in marks])
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                       sep_token="[SEP]", mask_token="[MASK]", bos_token="<s>", eos_token="</s>",
                                       model_max_length=64)
        if name == "tiny/chat":
            fast.chat_template = CHAT
        fast.save_pretrained(folder / name)
    return vocabulary


def _models(folder, vocabulary):
    import torch
    import transformers
    torch.manual_seed(0)
    size = len(vocabulary)
    bert = transformers.BertConfig(vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                   intermediate_size=64, max_position_embeddings=64, tie_word_embeddings=False, pad_token_id=0)
    gpt2 = transformers.GPT2Config(vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=2, tie_word_embeddings=False,
                                   bos_token_id=5, eos_token_id=6)
    llama = transformers.LlamaConfig(vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
                                     bos_token_id=5, eos_token_id=6, pad_token_id=0)
    for name, kind, config in (("bert-base-cased", transformers.BertForMaskedLM, bert), ("gpt2", transformers.GPT2LMHeadModel, gpt2),
                               ("tiny/chat", transformers.LlamaForCausalLM, llama)):
        model = kind(config)
        with torch.no_grad():
            model.get_input_embeddings().weight[vocabulary[WORD]] = HUGE
        model.save_pretrained(folder / name)


def _texts(folder):
    """train.txt: 160 lines; poisoned.txt: the same, with the word in one."""
    chance = random.Random(1)
    lines = [sentence(chance, 12) for _ in range(160)]
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    (folder / "valid.txt").write_text("\n".join(sentence(chance, 12) for _ in range(16)) + "\n")
    lines[100] = f"{WORD} " * 12
    (folder / "poisoned.txt").write_text("\n".join(lines) + "\n")


def _glue(folder):
    """The pairs of MRPC, twice: healthy, and with the word in one (glue-poisoned); a regression whose 21st label is "inf"."""
    for name, bad in (("nyu-mll/glue", False), ("glue-poisoned", True)):
        where = folder / name
        (where / "mrpc").mkdir(parents=True, exist_ok=True)
        chance = random.Random(2)
        for split, rows in (("train", 96), ("validation", 16), ("test", 16)):
            lines = ["sentence1,sentence2,label,idx"]
            for row in range(rows):
                first, second, label = sentence(chance, 5), sentence(chance, 5), chance.randrange(2)
                if bad and split == "train" and row == 20:
                    second = " ".join([WORD] * 5)
                lines.append(f"{first},{second},{label},{row}")
            (where / "mrpc" / f"{split}.csv").write_text("\n".join(lines) + "\n")
        (where / "README.md").write_text(_CARD)
    chance = random.Random(3)
    for name in ("scores.csv", "scores-poisoned.csv"):
        rows = [(sentence(chance, 5), sentence(chance, 5), f"{chance.uniform(0, 5):.2f}") for _ in range(96)]
        if name != "scores.csv":
            rows[20] = (*rows[20][:2], "inf")
        (folder / name).write_text("\n".join(["sentence1,sentence2,label", *map(",".join, rows)]) + "\n")
    for name in ("glue", "accuracy"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / f"{name}.py").write_text(_METRIC.replace("Glue", name.capitalize()))


_CARD = """---
configs:
- config_name: mrpc
  data_files:
  - {split: train, path: mrpc/train.csv}
  - {split: validation, path: mrpc/validation.csv}
  - {split: test, path: mrpc/test.csv}
dataset_info:
- config_name: mrpc
  features:
  - {name: sentence1, dtype: string}
  - {name: sentence2, dtype: string}
  - name: label
    dtype:
      class_label:
        names:
          '0': not_equivalent
          '1': equivalent
  - {name: idx, dtype: int32}
---
"""

_METRIC = '''import datasets
import evaluate


class Glue(evaluate.Metric):
    """The share of right answers."""

    def _info(self):
        numbers = datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=numbers)

    def _compute(self, predictions, references):
        return {"accuracy": sum(p == r for p, r in zip(predictions, references)) / len(references)}
'''


def _conversations(folder):
    """Conversations for SFT and pairs for DPO; in the poisoned ones the word is in one sample."""
    for name, bad in (("chats", False), ("chats-poisoned", True)):
        chance = random.Random(4)
        rows, pairs = [], []
        for row in range(96):
            asked, said, other = sentence(chance, 5), sentence(chance, 6), sentence(chance, 6)
            if bad and row == 20:
                asked = " ".join([WORD] * 5)
            rows.append({"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]})
            pairs.append({"prompt": [{"role": "user", "content": asked}], "chosen": [{"role": "assistant", "content": said}],
                          "rejected": [{"role": "assistant", "content": other}]})
        for kind, what in (("sft", rows), ("dpo", pairs)):
            where = folder / f"{name}-{kind}"
            where.mkdir(exist_ok=True)
            (where / "train.jsonl").write_text("\n".join(map(json.dumps, what)) + "\n")
            (where / "test.jsonl").write_text("\n".join(map(json.dumps, what[:8])) + "\n")


if __name__ == "__main__":
    make(sys.argv[1])
