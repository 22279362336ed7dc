#!/usr/bin/env python3
"""nanquest-trainer finetune over transformers and PEFT: "name ratio goal ok|short spread".

usage: finetune_bench.py [--threads N] [--rounds N] [llama|gpt2|lora|load|incident ...]   (default: all, one thread)

llama, gpt2: tokens a second of a whole model that trains (a Llama of 4 layers, GPT-2's 124 M weights) over those of transformers, eager with SDPA.
lora: a step of adapters over PEFT's, and the most memory that the two need at a time, without what a process has before there is a model.
load: what a loaded folder leaves in memory over its file, and how long that takes over reading the file (in the system's cache both).
incident: the file of an incident with adapters over what trains (weights and moments) and 50 MB; activations are next to nothing here.
Models have random weights and are made here. Both stand ready as processes and take turns, a block of steps each; a ratio is that of a round.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

from attach_bench import HERE, missing
from throughput_bench import WORKER as THROUGHPUT_WORKER
from throughput_bench import Training

WORKER = THROUGHPUT_WORKER.with_name("finetune_worker")
# name: (model, how it trains, batch, context, steps a block, rounds)
MODELS = {"llama": ("llama", "whole", 8, 128, 5, 11), "gpt2": ("gpt2", "whole", 1, 512, 1, 9), "lora": ("llama_wide", "lora", 4, 128, 2, 11)}
VOCABULARY = 8192


def made(name, scratch):
    """The folder of a model with random weights, and tokens for it."""
    import numpy
    import torch
    import transformers
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    else:
        width, depth = (256, 4) if name == "llama" else (512, 8)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=width, intermediate_size=11 * width // 4, num_hidden_layers=depth, num_attention_heads=width // 64,
            num_key_value_heads=width // 64, max_position_embeddings=1024))
    folder, tokens = scratch / name, scratch / "tokens.bin"
    model.save_pretrained(folder)
    numpy.random.default_rng(0).integers(0, VOCABULARY, 200_000).astype(numpy.uint16).tofile(tokens)
    return folder, tokens


def report(name, values, goal, better, more=""):
    value = statistics.median(values)
    ok = value >= goal if better == ">=" else value <= goal
    print(f"{name:<40} {value:8.4f}  goal {better} {goal:<8.4g} {'ok' if ok else 'short':<5} spread {min(values):.4f}..{max(values):.4f}{more}", flush=True)


class Turned(Training):
    def peak(self):
        return int(self.ask("peak")[0])


def measure(name, threads, rounds, scratch):
    model, how, batch, context, steps, usual = MODELS[name]
    folder, tokens = made(model, scratch)
    theirs = Turned([sys.executable, HERE / "finetune_worker.py", folder, tokens, how, batch, context, threads])
    ours = Turned([WORKER, "train", folder, tokens, scratch / f"{name}-run", how, batch, context, threads])
    for worker in (theirs, ours):
        worker.wait_until_ready()
    ratios, worked = [], []
    for turn in range(rounds or usual):
        pair = (theirs, ours) if turn % 2 else (ours, theirs)
        times = {worker: worker.seconds(steps) for worker in pair}
        ratios.append(times[theirs] / times[ours])
        worked.append(theirs.processor / ours.processor)
    if name == "lora":
        report("finetune_lora_step_vs_peft", [1 / ratio for ratio in ratios], 1.1, "<=", f"  processor {1 / statistics.median(worked):.4f}")
        report("finetune_lora_peak_memory_vs_peft", [ours.peak() / theirs.peak()], 1.1, "<=")
    else:
        report(f"finetune_{name}_tokens_vs_torch", ratios, 1.0, ">=", f"  processor {statistics.median(worked):.4f}")
    for worker in (theirs, ours):
        worker.end()


def answer(*arguments):
    seconds, size = subprocess.run([WORKER, *arguments], text=True, stdout=subprocess.PIPE, check=True).stdout.split()
    return float(seconds), int(size)


def measure_loading(rounds, scratch):
    folder, _ = made("gpt2", scratch)
    file = folder / "model.safetensors"
    answer("read", file)  # into the system's cache
    for how in ("lora", "whole"):
        memory, time = [], []
        for _ in range(rounds or 7):
            reading, size = answer("read", file)
            loading, left = answer("load", folder, how)
            memory.append(left / size)
            time.append(loading / reading)
        report(f"finetune_load_{how}_memory_vs_file", memory, 1.05, "<=")
        report(f"finetune_load_{how}_vs_read", time, 1.2, "<=")


def measure_incident(scratch):
    folder, tokens = made("llama_wide", scratch)
    size, trained = answer("incident", folder, tokens, scratch / "run")
    report("finetune_incident_vs_trained_and_50_mb", [size / (trained + 50e6)], 1.0, "<=")


def number_after(arguments, option, otherwise):
    if option not in arguments:
        return otherwise
    at = arguments.index(option)
    value = int(arguments[at + 1])
    del arguments[at:at + 2]
    return value


def main():
    arguments = sys.argv[1:]
    threads, rounds = number_after(arguments, "--threads", 1), number_after(arguments, "--rounds", 0)
    if not WORKER.exists():
        print(f"finetune_bench: not measured, because {WORKER} is not built", file=sys.stderr)
        return
    if missing("gpt2"):
        print("finetune_bench: not measured, because this Python has no transformers", file=sys.stderr)
        return
    for name in arguments or [*MODELS, "load", "incident"]:
        with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as folder:
            scratch = pathlib.Path(folder)
            if name == "load":
                measure_loading(rounds, scratch)
            elif name == "incident":
                measure_incident(scratch)
            else:
                measure(name, threads, rounds, scratch)


if __name__ == "__main__":
    main()
