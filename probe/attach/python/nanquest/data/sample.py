"""`nanquest sample`: what a model folder, or a fine-tune of it, answers to a text. nanquest-trainer sample draws the tokens."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from ..base import programs
from ..base.say import say
from . import model_folder
from .model_folder import BAD_FILE, DONE, INTERRUPTED, USAGE, Refused

HELP = """goes on with texts, by a Hugging Face model folder and what was learned of it. Each text is one prompt; without any, each line
of the standard input is."""
EXAMPLE = """examples:
  nanquest sample --model models/tiny-llama "The loss"
  nanquest sample --model models/tiny-llama --adapter runs/chats/checkpoints/adapter --chat "Why did it diverge?"
  nanquest sample --model runs/chats/checkpoints/model --temperature 0.8 --top-p 0.95 --seed 7 "The loss"

Exit code: 0 done, 2 usage, 3 a bad file, 130 interrupted."""

# Options passed to nanquest-trainer, with its defaults: name, metavar, help.
HANDED_ON = (
    ("max-new", "N", "tokens that are added, at most (128)"),
    ("temperature", "X", "the higher, the less likely tokens come; 0: always the likeliest (0)"),
    ("top-p", "X", "draw from the likeliest tokens that together have this probability (1: from all)"),
    ("seed", "N", "of what is drawn (42)"),
    ("device", "NAME", "cpu, cuda, cuda:1 (cpu)"),
    ("amp-dtype", "FORMAT", "fp32, bf16, fp16 or auto (auto)"),
)


def add_to(verbs) -> None:
    """The sub-command's options."""
    sub = verbs.add_parser(
        "sample",
        help="what a model, or a fine-tune of it, says to a text",
        description=HELP,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("--model", required=True, metavar="DIR", help="folder of a Hugging Face model: config.json, weights and tokenizer")
    sub.add_argument("--adapter", metavar="DIR", help="with the adapter in this folder, as nanquest-trainer finetune and PEFT write it")
    sub.add_argument("--chat", action="store_true", help="each prompt is what a user says, in the model's chat template")
    for name, value, text in HANDED_ON:
        sub.add_argument("--" + name, metavar=value, help=text)
    sub.add_argument("--json", action="store_true", help="an object a prompt: prompt, text, tokens (those that were added), ended")
    sub.add_argument("prompts", nargs="*", metavar="TEXT", help="the beginning of a text; with --chat a message")


class _Program:
    """A running nanquest-trainer sample, which answers a line of tokens with a line of JSON."""

    def __init__(self, options):
        try:
            program = programs.command("nanquest-trainer")
        except programs.Missing as problem:
            raise Refused(str(problem), USAGE) from None
        command = [*program, "sample", "--model", options.model, "--json"]
        command += ["--adapter", options.adapter] if options.adapter else []
        for name, _, _ in HANDED_ON:
            value = getattr(options, name.replace("-", "_"))
            command += ["--" + name, value] if value is not None else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, tokens: list):
        """The tokens that it adds; None if it has ended, after it printed why."""
        try:
            self._process.stdin.write(" ".join(map(str, tokens)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:  # it ended before it read the line
            return None
        return json.loads(line) if line else None

    def end(self) -> int:
        """Its exit code."""
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.stdout.close()
        return self._process.wait()


def _tokens_of(tokenizer, prompt: str, chat: bool) -> list:
    """The tokens as nanquest prepare makes them from the same text."""
    if not chat:
        return tokenizer(prompt)["input_ids"]
    try:
        text = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
    except Exception as problem:  # noqa: BLE001 (templates raise what they like)
        why = str(problem).strip().splitlines()
        raise Refused(f"no chat can be made of it: {why[0] if why else type(problem).__name__}; leave --chat out", USAGE) from None
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _prompts(options):
    if options.prompts:
        yield from options.prompts
        return
    asks = sys.stdin.isatty()
    while True:
        if asks:
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\n")


def _tell(options, tokenizer, prompt: str, tokens: list, answer: dict) -> None:
    # Decoded together, because a token may be half a letter, and some tokenizers drop the blank before the first word.
    before, whole = (tokenizer.decode(t, skip_special_tokens=True) for t in (tokens, tokens + answer["tokens"]))
    added = whole[len(before) :] if whole.startswith(before) else tokenizer.decode(answer["tokens"], skip_special_tokens=True)
    if options.json:
        print(
            json.dumps({"prompt": prompt, "text": added, "tokens": answer["tokens"], "ended": answer["ended"]}, ensure_ascii=False),
            flush=True,
        )
    else:
        print(added if options.chat else prompt + added, flush=True)


def _sample(options) -> int:
    model_folder.config_of(options.model)
    tokenizer = model_folder.tokenizer_of(options.model)
    if options.chat and not tokenizer.chat_template:
        raise Refused(f"{options.model}: its tokenizer has no chat template; leave --chat out", USAGE)
    program = None
    try:
        for prompt in _prompts(options):
            tokens = _tokens_of(tokenizer, prompt, options.chat)
            if not tokens:
                raise Refused(f"no token stands for {prompt!r}; give some text", USAGE)
            program = program or _Program(options)
            answer = program.answer(tokens)
            if answer is None:
                break
            _tell(options, tokenizer, prompt, tokens, answer)
    finally:
        code = program.end() if program else DONE
    return code


def main(options) -> int:
    """Exit code."""
    try:
        return _sample(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Refused as problem:
        say(str(problem))
        return problem.code
    except OSError as problem:
        say(f"{problem.filename or options.model}: {problem.strerror or problem}")
        return BAD_FILE
