"""As much of transformers as nanquest.huggingface asks for, for machines without it; like the real one, it looks for torch
without importing it."""

import importlib.util

importlib.util.find_spec("torch")


class TrainerCallback:
    pass
