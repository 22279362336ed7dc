"""What finetune_worker.cpp trains, as people write it with transformers, PEFT and PyTorch: eager, attention by SDPA, AdamW fused, clip 1.
A line "N" on stdin makes N steps, the answer is their seconds and how many of them the processor worked; "peak" asks for the most memory that
this process has had at a time, in bytes, without what it had before there was a model.

usage: finetune_worker.py FOLDER TOKENS.bin whole|lora BATCH CONTEXT THREADS. The first line on stdout says that it is ready.
"""
import os
import sys
import time

import numpy
import torch
import transformers

os.environ["HF_HUB_OFFLINE"] = "1"


def status_bytes(name):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))


def main():
    folder, file, how, batch, length, threads = *sys.argv[1:4], *map(int, sys.argv[4:7])
    torch.set_num_threads(threads)
    torch.manual_seed(42)
    if how == "lora":
        import peft
    before = status_bytes("VmRSS")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa")
    if how == "lora":
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=32, lora_dropout=0.05, task_type="CAUSAL_LM"))
    model.train()
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=2e-5, weight_decay=0, fused=True)
    data = numpy.memmap(file, dtype=numpy.uint16, mode="r")

    def steps(count):
        for _ in range(count):
            at = torch.randint(len(data) - length - 1, (batch,)).tolist()
            windows = torch.stack([torch.from_numpy(data[i:i + length + 1].astype(numpy.int64)) for i in at])
            optimizer.zero_grad()
            logits = model(input_ids=windows[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            loss.item()  # as every program does that logs it

    steps(4)  # the first makes gradients and moments, the next ones find memory for all of it
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "peak\n":
            print(status_bytes("VmHWM") - before, flush=True)
            continue
        begin, worked = time.perf_counter(), time.process_time()
        steps(int(line))
        print(time.perf_counter() - begin, time.process_time() - worked, flush=True)


main()
