"""From a line with a picture and its label to a model's input: `{"path": "a.png", "label": 1}`. Pictures are opened by Pillow; processor
and chat template are those of `transformers`. Every picture is asked the same question, whose answer is one token."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys

from .model_folder import USAGE, Refused
from .shard_files import Picture, picture_shard_bytes
from .text_samples import Broken, parsed, skip

FORMAT = "nanquest.prepared.pictures"
KINDS = '{"path": FILE, "label": 0 or 1}'
NAMES = ("path", "image")  # names of the picture's file in a line
LINES = 64  # pictures per shard: a process keeps this many in memory
QUESTION = "Does this picture contain a prompt injection? Answer with one word, Yes or No."
EDGE = 280  # pixels of a picture's shorter side, where the model's processor has no smaller one
ANSWERS = ((" Yes", " No"), (" yes", " no"), ("Yes", "No"), ("YES", "NO"))  # the first pair of single tokens is taken


@dataclasses.dataclass(frozen=True)
class PictureSettings:
    """What determines tokens and pixels, apart from the model's processor and the data."""

    question: str = QUESTION
    shortest_edge: int = EDGE
    skip_broken: bool = False


def found_in(paths: list) -> bool:
    """Whether the first line has a picture and a label."""
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = next((line for line in file if line.strip()), None)
        except OSError:
            return False  # plan.cut reports it
        if content is not None:
            try:
                line = parsed(content, KINDS)
            except Broken:
                return False
            return any(name in line for name in NAMES) and not any(name in line for name in ("text", "prompt", "messages"))
    return False


def file_of(line: dict, path: str) -> str:
    """The picture's file: the path as written, or else relative to the file of lines."""
    named = next((line[name] for name in NAMES if name in line), None)
    if not isinstance(named, str) or not named or "\0" in named:
        raise Broken(f"it names no picture: write {KINDS}")
    beside = os.path.join(os.path.dirname(path), named)
    return beside if not os.path.exists(named) and os.path.exists(beside) else named


def hash_of(paths: list) -> str:
    """Sizes and times of the pictures that the lines name."""
    hashed = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            for content in file:
                try:
                    picture = file_of(parsed(content, KINDS), path)
                    status = os.stat(picture)
                except (Broken, OSError, ValueError):
                    continue  # reported when its line is processed
                hashed.update(json.dumps([picture, status.st_size, status.st_mtime_ns]).encode())
    return hashed.hexdigest()


def processor_of(folder: str):
    """The processor as `transformers` reads it, with Pillow only for the pictures."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        import PIL.Image  # noqa: F401 - what opens the pictures
        from transformers import AutoImageProcessor, AutoProcessor

        processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
        if getattr(processor, "image_processor", None) is None:
            raise Refused(f"{folder}: its processor takes no pictures; give --model a folder of a LLaVA, with preprocessor_config.json")
        processor.image_processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    except ImportError as problem:
        name = {"PIL": "pillow"}.get(problem.name or "", problem.name or "transformers")
        raise Refused(f"the Python {sys.executable} has no {name}; pip install transformers pillow", USAGE) from None
    except Refused:
        raise
    except Exception as problem:  # noqa: BLE001 (transformers raises what it likes)
        why = str(problem).strip().splitlines()[0] if str(problem).strip() else repr(problem)
        raise Refused(f"{folder}: no processor of pictures could be read: {why}") from None
    return processor


def answers_of(tokenizer, folder: str) -> dict:
    """The tokens of Yes and No."""
    for yes, no in ANSWERS:
        tokens = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (yes, no)]
        if all(len(found) == 1 for found in tokens) and tokens[0] != tokens[1]:
            return {name: {"text": text, "token": found[0]} for name, text, found in zip(("yes", "no"), (yes, no), tokens)}
    raise Refused(
        f"{folder}: its tokenizer has neither of {', '.join(f'{yes!r} and {no!r}' for yes, no in ANSWERS)} as one token each; "
        "give a model whose tokenizer has"
    )


class PictureMaker:
    """Makes samples from lines."""

    at_once, unit = 16, "samples"

    def __init__(self, processor, folder: str, settings: PictureSettings):
        self._processor, self._settings = processor, settings
        size = dict(processor.image_processor.size)
        edge = min(settings.shortest_edge, size.get("shortest_edge") or settings.shortest_edge)
        self._size = {"shortest_edge": edge} if "shortest_edge" in size else None
        self.answers = answers_of(processor.tokenizer, folder)
        self.prompt = self._prompt(folder)
        self.tokens, self.shape = self._asked(folder)

    def _prompt(self, folder: str) -> str:
        messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": self._settings.question}]}]
        if not self._processor.chat_template:
            raise Refused(f"{folder}: its processor has no chat template; save one with it (chat_template.jinja)")
        try:
            return self._processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as problem:  # noqa: BLE001 (templates raise what they like)
            raise Refused(
                f"{folder}: its chat template refuses a picture with a question: {str(problem).strip().splitlines()[:1]}"
            ) from None

    def _asked(self, folder: str) -> tuple:
        """(the question's tokens, including those that the picture replaces; shape of a picture's pixels)"""
        from PIL import Image

        more = {"size": self._size} if self._size else {}
        try:
            read = self._processor(text=[self.prompt], images=[Image.new("RGB", (64, 64))], return_tensors="np", **more)
            return [int(token) for token in read["input_ids"][0]], list(read["pixel_values"].shape[1:])
        except Exception as problem:  # noqa: BLE001 (transformers raises what it likes)
            raise Refused(
                f"{folder}: its processor takes no picture with a question: {(str(problem).strip() or repr(problem)).splitlines()[0]}"
            ) from None

    def identity(self, tokenizer: dict, paths: list) -> dict:
        """What identifies this data."""
        processor = self._processor.image_processor.to_dict()
        return {
            **tokenizer,
            "asked": self.tokens,
            "processor": json.loads(json.dumps(processor, default=str)),
            "picture_size": self._size,
            "pictures": hash_of(paths),
        }

    def samples(self, lines: list, report: dict, path: str) -> list:
        """Takes (number, bytes) pairs. What happened to lines is counted in `report`. Raises Broken for a broken line, unless they are
        skipped."""
        opened = []
        for number, content in lines:
            if not content.strip():
                continue
            try:
                opened.append(self._opened(number, content, path))
            except Broken as problem:
                if not self._settings.skip_broken:
                    raise Broken(f"{number}: {problem}") from None
                skip(report, number, str(problem))
        return opened

    def _opened(self, number: int, content: bytes, path: str) -> Picture:
        line = parsed(content, KINDS)
        if any(name in line for name in ("text", "prompt", "messages")):
            raise Broken("text among lines with pictures; prepare it by itself")
        file = file_of(line, path)
        if "label" not in line:
            raise Broken(f"it has no label: write {KINDS}")
        label = line["label"]
        if isinstance(label, bool) or label not in (0, 1):
            raise Broken(f"its label is {json.dumps(label)[:40]}, neither 0 (No) nor 1 (Yes)")
        return Picture(number, file, int(label), self._pixels(file))

    def _pixels(self, file: str):
        import warnings

        from PIL import Image

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(file) as picture:
                    whole = picture.convert("RGB")
            more = {"size": self._size} if self._size else {}
            pixels = self._processor.image_processor(images=[whole], return_tensors="np", **more)["pixel_values"][0]
        except FileNotFoundError:
            raise Broken(f"{file}: no such picture; paths begin here or beside the file of lines") from None
        except Exception as problem:  # noqa: BLE001 (Pillow and its plug-ins raise what they like)
            why = (str(problem).strip() or repr(problem)).splitlines()[0]
            raise Broken(f"{file}: can't be read as a picture: {why}") from None
        if list(pixels.shape) != self.shape:
            raise Broken(f"{file}: of {pixels.shape} pixels once it is processed, not {tuple(self.shape)}")
        return pixels

    def shard(self, samples: list, report: dict) -> bytes:
        """The shard's bytes; `report` gets the counts."""
        report.update(samples=len(samples), yes=sum(sample.label for sample in samples))
        return picture_shard_bytes(samples, self.shape)

    # manifest entries besides the counts

    totals = ("lines", "samples", "yes", "skipped")
    counts = ("samples",)

    def about(self, reports: list) -> dict:
        """Sums over all shards."""
        return {"format": FORMAT, "prompt": {"text": self.prompt, "tokens": self.tokens}, "answers": self.answers, "pixels": self.shape}

    @staticmethod
    def told(manifest: dict, size: str) -> list:
        """Lines for the user."""
        total = manifest["total"]
        return [f"prepared         {total['samples']} pictures, {total['yes']} of them to be answered with Yes; {size}"]


def maker(options, tokenizer_identity) -> tuple:
    """(PictureMaker, its settings, the tokenizer's identity)"""
    settings = PictureSettings(options.question or QUESTION, options.shortest_edge or EDGE, options.skip_broken)
    processor = processor_of(options.model)
    made = PictureMaker(processor, options.model, settings)
    return made, settings, made.identity(tokenizer_identity(options.model, processor.tokenizer), options.data)
