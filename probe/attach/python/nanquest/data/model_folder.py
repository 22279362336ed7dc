"""A Hugging Face model folder on this machine, as the commands about data and text read it: config.json and tokenizer."""

from __future__ import annotations

import json
import os
import sys

DONE, FOUND, USAGE, BAD_FILE, INTERRUPTED = 0, 1, 2, 3, 130


class Refused(Exception):
    """A line for the user, and the exit code."""

    def __init__(self, text: str, code: int = 3):
        super().__init__(text)
        self.code = code


def config_of(folder: str) -> dict:
    """The configuration of its language model."""
    path = os.path.join(folder, "config.json")
    if not os.path.isdir(folder):
        raise Refused(f"{folder}: no such folder; give --model a Hugging Face model folder on this machine")
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        return {**config, **(config.get("text_config") or {})}
    except (OSError, ValueError, TypeError) as problem:
        raise Refused(f"{path}: {getattr(problem, 'strerror', None) or problem}; give --model a Hugging Face model folder") from None


def tokenizer_of(folder: str):
    """The tokenizer as `transformers` reads it; it must tell which characters a token stands for."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the work runs in parallel as one process per core
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except ImportError as problem:
        raise Refused(f"the Python {sys.executable} has no {problem.name or 'transformers'}; pip install transformers", USAGE) from None
    except Exception as problem:  # noqa: BLE001 (transformers raises what it likes)
        raise Refused(
            f"{folder}: no tokenizer could be read: {str(problem).strip().splitlines()[0] if str(problem).strip() else problem!r}"
        ) from None
    if not tokenizer.is_fast:
        raise Refused(
            f"{folder}: its tokenizer does not say which characters a token stands for (it is not a fast one); "
            "save it anew with a tokenizer.json"
        )
    return tokenizer
