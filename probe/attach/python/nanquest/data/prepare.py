"""`nanquest prepare`: lines of JSON to the shards that the trainer reads, with the tokenizer and chat template of a model folder."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys

from ..base.say import say
from ..base.sizes import in_words
from . import making, model_folder, picture_samples, plan, shard_files, text_samples
from .model_folder import BAD_FILE, DONE, FOUND, INTERRUPTED, USAGE, Refused
from .prepare_options import USUAL
from .text_samples import Broken, Maker, Settings


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


def _manifest(maker, options, settings, config: dict, tokenizer: dict, hashes: list, cuts: list, reports: list, key: str) -> dict:
    total = {name: sum(report[name] for report in reports) for name in maker.totals}
    shards = [
        {"name": shard.name() + ".bin", **{name: report[name] for name in ("file", "bytes", "crc32", *maker.counts)}}
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
        **maker.about(reports),
        "skipped": [[options.data[report["file"]] + f":{line}", why] for report in reports for line, why in report["reasons"]],
        "shards": shards,
    }


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _tell(manifest: dict, maker, options, verb: str) -> None:
    total = manifest["total"]
    first, *more = maker.told(
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
    maker, settings, identity = _picture_maker(options) if pictures else _text_maker(options, config)
    key = plan.key_of(dataclasses.asdict(settings), hashes, identity)
    with plan.claimed(options.out):
        manifest = plan.begin(options.out, key, options.overwrite)
        if manifest is None:
            reports = making.make_all(cuts, maker, options)
            manifest = _manifest(maker, options, settings, config, identity, hashes, cuts, reports, key)
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
        _tell(manifest, maker, options, "yesno" if pictures else "finetune")
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
