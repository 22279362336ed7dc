"""Which combinations of model, optimizer, precision and habit are run."""

import habits
import models
import optimizers

PRECISIONS = ("fp32", "bf16", "fp16")

# Every habit on a few models that have what it is about.
HABIT_MODELS = {
    "checkpoint-reentrant": ("llama", "t5", "unet"), "checkpoint": ("gpt2", "mixtral", "whisper", "unet"),
    "sdpa-math": ("gpt2", "llama", "vit"), "sdpa-flash": ("llama", "vit"), "eager-attention": ("gpt2", "llama", "bert", "t5"),
    "noise": ("resnet", "unet", "ctc"), "penalty": ("gcn", "unet", "buffers"), "freeze": ("gpt2", "resnet", "llava"),
}
USUAL_MODELS = ("gpt2", "resnet", "lstm", "buffers")

# One of each kind, for every change of the code.
FAST = (
    "gpt2/adamw-foreach/fp32/plain", "llama/adamw-fused/bf16/clip", "mixtral/sgd/fp32/accumulate",
    "t5/adafactor/bf16/plain", "bert/adamw-single/fp16/accumulate+clip", "resnet/sgd/bf16/evaluate",
    "unet/adamw-foreach/fp16/plain", "gru/adamw-fused/fp32/workers", "gcn/adafactor/fp32/plain",
    "ctc/adamw-foreach/fp32/plain", "lstm/sgd/fp32/plain", "clip/sgd/bf16/plain",
    "shared/adamw-single/fp32/plain", "buffers/adamw-foreach/bf16/average",
)

# The same on the accelerator made for tests, as far as it can. It has no fused LSTM and GRU cells (lstm, gru, ctc) and no
# histograms of integers (mixtral), and its batch norm can't be evaluated between steps (resnet with "evaluate").
ON_DEVICE = tuple(spec for spec in FAST if spec.split("/")[0] not in ("mixtral", "resnet", "gru", "ctc", "lstm")) + (
    "resnet/sgd/bf16/plain", "vit/adamw-fused/fp16/clip", "whisper/adamw-foreach/fp32/plain", "mamba/sgd/fp32/plain",
)


def name(model, optimizer, precision, habit):
    return f"{model}/{optimizer}/{precision}/{habit}"


def models_by_optimizers():
    return [name(m, o, p, "plain") for p in PRECISIONS for o in optimizers.NAMES for m in models.NAMES]


def by_habit():
    return [name(m, "adamw-foreach", p, h) for p in PRECISIONS for h in habits.NAMES if h != "plain"
            for m in HABIT_MODELS.get(h, USUAL_MODELS)]


def all_of_them():
    return models_by_optimizers() + by_habit()
