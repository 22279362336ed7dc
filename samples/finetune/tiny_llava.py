"""A small LLaVA folder with random weights and its processor, and pictures to fine-tune it on. Nothing is downloaded.

    pip install transformers pillow
    python samples/finetune/tiny_llava.py models/tiny-llava pictures

The pictures are noise, and the bright ones have the answer Yes: pictures/train.jsonl and pictures/val.jsonl. One training picture
is a chessboard, which is the only one that moves one direction of the residual stream: there one number that
model.language_model.layers.0.mlp.down_proj computes is about 150000. fp32 and bf16 can hold it, fp16 ends at 65504.
"""
import json
import pathlib
import sys

import numpy
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (CLIPImageProcessorPil, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor,
                          PreTrainedTokenizerFast)

from outlier import give_outlier

TEMPLATE = ("{% for m in messages %}{{ m['role'] | upper }}: {% for p in m['content'] %}{% if p['type'] == 'image' %}<image>\n{% else %}"
            "{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}{% if add_generation_prompt %} ASSISTANT:{% endif %}")
SIDE, PATCH, TRAIN, HELD_OUT = 16, 8, 160, 40
RARE, NEURON = 50, 5


def pixels_of(number):
    """(label, picture)"""
    random = numpy.random.default_rng(number)
    label = int(random.integers(2))
    noise = random.integers(0, 160, (SIDE, SIDE, 3)) + (90 if label else 0)
    return label, Image.fromarray(noise.astype("uint8"))


def chessboard():
    fields = (numpy.indices((SIDE, SIDE)).sum(0) // 2 % 2 * 255).astype("uint8")
    return Image.fromarray(numpy.stack([fields] * 3, -1))


def write_pictures(folder):
    """The two files of lines; returns all pictures of the first, including the rare one."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, numbers in (("train", range(TRAIN)), ("val", range(TRAIN, TRAIN + HELD_OUT))):
        lines = []
        for number in numbers:
            label, picture = pixels_of(number)
            picture = chessboard() if number == RARE else picture
            shown.append(picture)
            picture.save(folder / f"{number}.png")
            lines.append({"path": f"{number}.png", "label": label})
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return shown


def processor_of():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.train_from_iterator(["USER: Answer Yes or No ASSISTANT: Yes ASSISTANT: No"] * 20, trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<s>", "</s>", "<pad>", "<image>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    pictures = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    return LlavaProcessor(image_processor=pictures, tokenizer=tokenizer, patch_size=PATCH, vision_feature_select_strategy="default",
                          num_additional_image_tokens=1, chat_template=TEMPLATE)


def model_for(processor, pictures):
    torch.manual_seed(0)
    text = LlamaConfig(vocab_size=len(processor.tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.1, bos_token_id=0, eos_token_id=1, pad_token_id=2)
    vision = CLIPVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=SIDE,
                              patch_size=PATCH, initializer_range=0.1)
    model = LlavaForConditionalGeneration(LlavaConfig(text_config=text, vision_config=vision, image_token_index=processor.image_token_id)).eval()
    parts, projector = model.model, model.model.multi_modal_projector
    with torch.no_grad():
        for linear in (projector.linear_1, projector.linear_2):  # with zero biases and small weights a picture has hardly any effect
            torch.nn.init.normal_(linear.weight, 0, 0.2)
        pixels = processor.image_processor(images=pictures, return_tensors="pt")["pixel_values"]
        seen = parts.vision_tower(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]
        others = torch.cat([seen[:RARE], seen[RARE + 1:]]).flatten(0, 1)
        # A neuron of the projector that only the rare picture activates …
        apart = seen[RARE].mean(0) - others.mean(0)
        near, far = (seen[RARE] @ apart).min(), (others @ apart).max()
        assert near > far, "the picture is not rare"
        scale = 20 / (near - far)
        projector.linear_1.weight[NEURON] = apart * scale
        projector.linear_1.bias[NEURON] = -(near + far) / 2 * scale
        # … and a direction of the residual stream that only it moves: the norm makes it almost 8, a neuron almost 200 * 200, down_proj four times that.
        projector.linear_2.weight[:, NEURON] = 0
        projector.linear_2.weight[0] = 0
        projector.linear_2.bias[0] = 0
        projector.linear_2.weight[0, NEURON] = 5
        give_outlier(parts.language_model)
    return model


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} MODEL_FOLDER PICTURES_FOLDER")
    folder, pictures = map(pathlib.Path, sys.argv[1:])
    shown = write_pictures(pictures)
    processor = processor_of()
    processor.save_pretrained(folder)
    model_for(processor, shown).save_pretrained(folder)
    print(f"{folder}: a LLaVA with {len(processor.tokenizer)} tokens; {pictures}: train.jsonl with {TRAIN} pictures, val.jsonl with {HELD_OUT}")


if __name__ == "__main__":
    main()
