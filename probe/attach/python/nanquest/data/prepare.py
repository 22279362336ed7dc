"""`nanquest prepare`: lines of JSON to the shards that the trainer reads, with the tokenizer and chat template of a model folder."""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import shlex
import signal
import sys
import time
import types
import zlib
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ..base.say import say
from ..base.sizes import in_words
from . import model_folder, picture_samples, plan, shard_files, text_samples
from .model_folder import BAD_FILE, DONE, FOUND, INTERRUPTED, USAGE, Refused
from .text_samples import LEARN, LONG, Broken, Maker, Settings

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


def _settings(options, config: dict) -> Settings:
    bears = next((config[name] for name in ("max_position_embeddings", "n_positions", "n_ctx") if isinstance(config.get(name), int)), None)
    if options.max_length and bears and options.max_length > bears:
        raise Refused(f"--max-length {options.max_length} is more than the {bears} tokens that the model bears (config.json)", USAGE)
    if options.packing and options.length_groups:
        raise Refused("--packing makes all rows about as long, so --length-groups has nothing to do; give one of the two", USAGE)
    return Settings(
        options.max_length or min(USUAL, bears or USUAL),
        options.long,
        options.learn,
        options.eos,
        options.packing,
        options.length_groups,
        options.skip_broken,
    )


# In the worker processes: they are forked, so they have the tokenizer.
_worker = types.SimpleNamespace(maker=None)  # a Maker or PictureMaker: workers are forked after it is made


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles the terminal's Ctrl-C


def _make(shard: plan.Cut, out: str) -> dict:
    """Writes a shard; returns what happened to its lines. Broken names file and line."""
    report = {"file": shard.file, "lines": 0, "skipped": 0, "cut": 0, "split": 0, "reasons": []}
    samples, waiting = [], []
    try:
        for line in shard.lines():
            report["lines"] += 1
            waiting.append(line)
            if len(waiting) == _worker.maker.at_once:
                samples += _worker.maker.samples(waiting, report, shard.path)
                waiting = []
        samples += _worker.maker.samples(waiting, report, shard.path)
    except Broken as problem:
        raise Broken(f"{shard.path}:{problem}") from None
    content = _worker.maker.shard(samples, report)
    report.update(bytes=len(content), crc32=zlib.crc32(content))
    shard_files.write_json(os.path.join(out, shard.name() + ".json"), report)
    shard_files.write_whole(os.path.join(out, shard.name() + ".bin"), content)
    return report


class _Progress:
    """Progress: one line that is rewritten on a terminal, otherwise a few lines."""

    def __init__(self, shards: int, unit: str):
        self._shards, self._unit, self._done, self._made, self._began, self._told = shards, unit, 0, 0, time.monotonic(), 0.0
        self._moves = sys.stderr.isatty()

    def add(self, report: dict) -> None:
        self._done += 1
        self._made += report[self._unit]
        now = time.monotonic()
        if self._moves:
            print(f"\r{self._done}/{self._shards} shards, {self._made} {self._unit}", end="", file=sys.stderr, flush=True)
        elif now - self._told >= 10 and now - self._began >= 10:
            self._told = now
            say(f"{self._done} of {self._shards} shards, {self._made} {self._unit}")

    def close(self) -> None:
        if self._moves and self._done:
            print(file=sys.stderr)


def _make_all(cuts: list, options) -> list:
    """The reports of all shards, in order. If lines are broken, the first one of the data is reported."""
    reports = [plan.done(options.out, shard) for shard in cuts]
    waiting = [shard for shard, report in zip(cuts, reports) if report is None]
    if len(waiting) < len(cuts):
        say(f"{len(cuts) - len(waiting)} of {len(cuts)} shards are there already")
    progress = _Progress(len(waiting), _worker.maker.unit)
    pool = ProcessPoolExecutor(
        min(options.processes or len(os.sched_getaffinity(0)), max(len(waiting), 1)), multiprocessing.get_context("fork"), _begin_worker
    )
    try:
        for shard, made in [(shard, pool.submit(_make, shard, options.out)) for shard in waiting]:
            reports[shard.number] = made.result()
            progress.add(reports[shard.number])
    except BrokenProcessPool:
        raise Refused(
            "a process was killed, maybe for want of memory; the same command goes on, --processes 1 takes the least", BAD_FILE
        ) from None
    finally:
        progress.close()
        pool.shutdown(cancel_futures=True)
    return reports


def _manifest(options, settings, config: dict, tokenizer: dict, hashes: list, cuts: list, reports: list, key: str) -> dict:
    total = {name: sum(report[name] for report in reports) for name in _worker.maker.totals}
    shards = [
        {"name": shard.name() + ".bin", **{name: report[name] for name in ("file", "bytes", "crc32", *_worker.maker.counts)}}
        for shard, report in zip(cuts, reports)
        if report["samples"]
    ]
    return {
        "version": shard_files.VERSION,
        "key": key,
        "files": [{"path": path, "sha256": sha256} for path, sha256 in zip(options.data, hashes)],
        "settings": dataclasses.asdict(settings),
        "tokenizer": tokenizer,
        "model": {"path": options.model, "vocabulary": config.get("vocab_size")},
        "total": total,
        **_worker.maker.about(reports),
        "skipped": [[options.data[report["file"]] + f":{line}", why] for report in reports for line, why in report["reasons"]],
        "shards": shards,
    }


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _tell(manifest: dict, options, verb: str) -> None:
    total = manifest["total"]
    first, *more = _worker.maker.told(
        manifest, f"{in_words(sum(shard['bytes'] for shard in manifest['shards']))} in {_count(len(manifest['shards']), 'shard')}"
    )
    print(first)
    if total["skipped"]:
        print(f"passed over      {_count(total['skipped'], 'line')}; the first: {manifest['skipped'][0][0]}: {manifest['skipped'][0][1]}")
    for line in more:
        print(line)
    print(f"next             nanquest-trainer {verb} --model {shlex.quote(options.model)} --data {shlex.quote(options.out)}")


def _text_maker(options, config: dict) -> tuple:
    """(Maker, its settings, the tokenizer's identity)"""
    for name in ("question", "shortest_edge"):
        if getattr(options, name) is not None:
            raise Refused(
                f"--{name.replace('_', '-')} is for pictures, and {options.data[0]} begins with a line of text; leave it out", USAGE
            )
    settings = _settings(options, config)
    tokenizer = model_folder.tokenizer_of(options.model)
    if isinstance(config.get("vocab_size"), int) and len(tokenizer) > config["vocab_size"]:
        say(
            f"the tokenizer knows {len(tokenizer)} tokens, the model {config['vocab_size']}: a line that uses the others will be refused in training"
        )
    return Maker(tokenizer, settings), settings, text_samples.identity(options.model, tokenizer)


def _picture_maker(options) -> tuple:
    """(PictureMaker, its settings, the tokenizer's identity)"""
    for name, usual in (
        ("max_length", None),
        ("long", Settings.long),
        ("learn", Settings.learn),
        ("eos", True),
        ("packing", False),
        ("length_groups", 0),
    ):
        if getattr(options, name) != usual:
            flag = "no-eos" if name == "eos" else name.replace("_", "-")
            raise Refused(f"--{flag} is for text, and {options.data[0]} begins with a picture; leave it out", USAGE)
    return picture_samples.maker(options, text_samples.identity)


def _prepare(options) -> int:
    config = model_folder.config_of(options.model)
    pictures = picture_samples.found_in(options.data)
    cuts, hashes = plan.cut(options.data, picture_samples.LINES if pictures else sys.maxsize)
    _worker.maker, settings, identity = _picture_maker(options) if pictures else _text_maker(options, config)
    key = plan.key_of(dataclasses.asdict(settings), hashes, identity)
    with plan.claimed(options.out):
        manifest = plan.begin(options.out, key, options.overwrite)
        if manifest is None:
            reports = _make_all(cuts, options)
            manifest = _manifest(options, settings, config, identity, hashes, cuts, reports, key)
            if not manifest["total"]["samples"]:
                why = f" (the first: {manifest['skipped'][0][0]}: {manifest['skipped'][0][1]})" if manifest["skipped"] else ""
                raise Refused(f"{', '.join(options.data)}: no line could be used{why}")
            plan.finish(options.out, manifest)
    if options.json:
        print(
            json.dumps(
                {name: manifest[name] for name in ("format", "version", "total", "longest", "skipped") if name in manifest}, indent=1
            )
        )
    else:
        _tell(manifest, options, "yesno" if pictures else "finetune")
    return FOUND if manifest["total"]["skipped"] else DONE


def main(options) -> int:
    """Exit code."""
    try:
        return _prepare(options)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on")
        return INTERRUPTED
    except Broken as problem:
        say(f"{problem}; mend it, or --skip-broken passes over such lines")
        return BAD_FILE
    except Refused as problem:
        say(str(problem))
        return problem.code
    except OSError as problem:
        say(f"{problem.filename or options.out}: {problem.strerror or problem}; the same command goes on once that is mended")
        return BAD_FILE
