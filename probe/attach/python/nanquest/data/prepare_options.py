"""The options of `nanquest prepare`."""

from __future__ import annotations

import argparse

from . import picture_samples
from .text_samples import LEARN, LONG, Settings

USUAL = 1024  # tokens of a row, unless the model allows fewer

HELP = """turns lines of JSON into tokens for nanquest-trainer, with the tokenizer and chat template of a model folder. A line is
{"text": …}, {"prompt": …, "completion": …} or {"messages": [{"role": …, "content": …}, …]} (with "tools", if the template takes them).
Or pictures that a LLaVA is to answer with Yes or No: {"path": FILE, "label": 1 for Yes, 0 for No}."""
EXAMPLE = """examples:
  nanquest prepare --model models/tiny-llama --data chats.jsonl --out prepared
  nanquest prepare --model models/tiny-llama --data a.jsonl b.jsonl --max-length 2048 --packing --out prepared
  nanquest-trainer finetune --model models/tiny-llama --data prepared --lora --run-dir runs/chats
  nanquest prepare --model models/llava --data pictures.jsonl --out prepared
  nanquest-trainer yesno --model models/llava --data prepared --lora --run-dir runs/yesno

The same command again goes on where an interrupted one ended. Exit code: 0 done, 1 done but for lines that were passed over, 2 usage,
3 a bad file (the line is named), 130 interrupted."""


def _least(least: int):
    def whole(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return whole


def add_to(verbs) -> None:
    """The sub-command's options."""
    sub = verbs.add_parser(
        "prepare",
        help="lines of JSON to tokens for nanquest-trainer",
        description=HELP,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--model", required=True, metavar="DIR", help="folder of a Hugging Face model: config.json and tokenizer")
    sub.add_argument("--data", required=True, nargs="+", metavar="FILE", help="files of JSON lines")
    sub.add_argument("--out", required=True, metavar="DIR", help="folder for the shards; made if it is not there")
    sub.add_argument(
        "--max-length",
        type=_least(2),
        default=None,
        metavar="N",
        help=f"tokens of a row at most (default: {USUAL}, or what the model bears if that is less)",
    )
    sub.add_argument(
        "--long",
        choices=LONG,
        default=Settings.long,
        help="what becomes of a line with more tokens: cut off, split into several, passed over (default: %(default)s)",
    )
    sub.add_argument(
        "--learn",
        choices=LEARN,
        default=Settings.learn,
        help="which tokens the loss counts: completions and what the assistant says, only its last message, or all; of "
        '"text" always all (default: %(default)s)',
    )
    sub.add_argument("--no-eos", dest="eos", action="store_false", help="put no end-of-text token behind text and completions")
    sub.add_argument("--packing", action="store_true", help="several samples in a row, as many as fit; none sees another")
    sub.add_argument(
        "--length-groups",
        type=_least(2),
        default=0,
        metavar="N",
        help="rows of similar length are learned from together, in groups of N: less padding (default: rows of any length)",
    )
    sub.add_argument("--question", metavar="TEXT", help=f"what the model is asked of each picture (default: {picture_samples.QUESTION})")
    sub.add_argument(
        "--shortest-edge",
        type=_least(1),
        metavar="N",
        help=f"pixels of a picture's shorter side before its middle is taken (default: {picture_samples.EDGE}, or what the model's processor "
        "says if that is less)",
    )
    sub.add_argument("--skip-broken", action="store_true", help="pass over lines that can't be used; the manifest names them")
    sub.add_argument("--processes", type=_least(1), default=None, metavar="N", help="default: one a core")
    sub.add_argument("--overwrite", action="store_true", help="replace other prepared data in --out")
    sub.add_argument("--json", action="store_true", help="print the summary as JSON")
