"""From a line of JSON to tokens and the mask of what is learned. Tokens and chat templates are those of `transformers`."""

from __future__ import annotations

import dataclasses
import json
import re
import zlib

from .shard_files import Sample, packed, shard_bytes

LEARN = ("answers", "last", "all")
LONG = ("cut", "split", "skip")
KINDS = '{"text": …}, {"prompt": …, "completion": …} or {"messages": [{"role": …, "content": …}, …]}'
GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")  # the template itself says what the model writes
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt")
KEPT = 50  # the most reasons for skipped lines that a shard keeps


class Broken(Exception):
    """A line that can't be used; the text says why."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What determines the tokens, apart from the model's tokenizer and the data."""

    max_length: int
    long: str = "cut"
    learn: str = "answers"
    eos: bool = True
    packing: bool = False
    length_groups: int = 0
    skip_broken: bool = False


@dataclasses.dataclass
class Text:
    """The text for the tokenizer, and which characters of it are learned (None: all)."""

    line: int
    text: str
    spans: list | None
    whole: bool = False  # the text already has its special tokens (from a chat template)
    learned: list | None = None  # by token, if the template itself marks them
    tokens: list | None = None


def identity(folder: str, tokenizer) -> dict:
    """What identifies a tokenizer: its files with size and CRC-32, and what can change apart from them."""
    import os

    files = {}
    for name in TOKENIZER_FILES:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            files[name] = {"bytes": len(content), "crc32": zlib.crc32(content)}
        except OSError:
            continue
    template = tokenizer.chat_template
    text = template if isinstance(template, str) else json.dumps(template, sort_keys=True)
    return {
        "class": type(tokenizer).__name__,
        "size": len(tokenizer),
        "files": files,
        "backend_crc32": zlib.crc32(tokenizer.backend_tokenizer.to_str().encode()),
        "template_crc32": zlib.crc32((text or "").encode()),
        "bos": tokenizer.bos_token_id,
        "eos": tokenizer.eos_token_id,
        "pad": tokenizer.pad_token_id,
    }


def parsed(content: bytes, kinds: str) -> dict:
    """The line's object; Broken says what it is instead, and which `kinds` were expected."""
    try:
        line = json.loads(content.rstrip())
    except UnicodeDecodeError as problem:
        raise Broken(f"not UTF-8 (byte {problem.start} of the line)") from None
    except json.JSONDecodeError as problem:
        raise Broken(f"not JSON: {problem.msg} at character {problem.pos + 1}") from None
    except (RecursionError, ValueError):  # the latter for numbers with thousands of digits
        raise Broken("JSON that is nested too deeply, or a number that is too long") from None
    if not isinstance(line, dict):
        raise Broken(f"not a JSON object: write {kinds}")
    return line


def skip(report: dict, number: int, why: str) -> None:
    """Counts a line that is skipped."""
    report["skipped"] += 1
    if len(report["reasons"]) < KEPT:
        report["reasons"].append([number, why])


class Maker:
    """Makes samples from lines."""

    at_once, unit = 256, "tokens"  # lines that are tokenized together; unit of progress
    totals = ("lines", "rows", "samples", "tokens", "learned", "skipped", "cut", "split")
    counts = ("tokens", "samples", "rows")

    def __init__(self, tokenizer, settings: Settings):
        self._tokenizer, self._settings = tokenizer, settings
        template = tokenizer.chat_template
        self._says_itself = isinstance(template, str) and GENERATION.search(template) is not None

    def samples(self, lines: list, report: dict, _path: str) -> list:
        """Takes (number, bytes) pairs. What happened to lines is counted in `report`. Raises Broken for a broken line, unless they are
        skipped."""
        texts = []
        for number, content in lines:
            if not content.strip():
                continue
            try:
                texts.append(self._text(number, content))
            except Broken as problem:
                if not self._settings.skip_broken:
                    raise Broken(f"{number}: {problem}") from None
                skip(report, number, str(problem))
        made = []
        for whole in (False, True):
            group = [text for text in texts if text.whole == whole and text.tokens is None]
            if not group:
                continue
            read = self._tokenizer(
                [text.text for text in group], add_special_tokens=not whole, return_offsets_mapping=True, return_attention_mask=False
            )
            for text, tokens, offsets in zip(group, read["input_ids"], read["offset_mapping"]):
                text.tokens, text.learned = tokens, self._mask(text, offsets)
        for text in texts:
            made += self._pieces(text, report)
        return made

    # text of a line

    def _text(self, number: int, content: bytes) -> Text:
        line = parsed(content, KINDS)
        if any(name in line for name in ("image", "images", "path")):
            raise Broken("a picture among lines of text; prepare pictures with labels by themselves")
        if "messages" in line:
            return self._chat(number, line["messages"], 0, line)
        if "prompt" in line and "completion" in line:
            prompt, completion = line["prompt"], line["completion"]
            if isinstance(prompt, list) and isinstance(completion, list):
                return self._chat(number, prompt + completion, len(prompt), line)
            if not isinstance(prompt, str) or not isinstance(completion, str):
                raise Broken("prompt and completion must both be text, or both lists of messages")
            self._sound(prompt + completion)
            spans = None if self._settings.learn == "all" else [(len(prompt), len(prompt) + len(completion))]
            return Text(number, prompt + completion, spans)
        if "text" in line:
            if not isinstance(line["text"], str):
                raise Broken('"text" is not text')
            self._sound(line["text"])
            return Text(number, line["text"], None)
        names = ", ".join(sorted(map(str, line))[:6]) or "nothing"
        raise Broken(f"it holds {names}: write {KINDS}")

    @staticmethod
    def _sound(text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Broken("half of a surrogate pair, which no tokenizer takes") from None

    def _chat(self, number: int, messages, first: int, line: dict) -> Text:
        """`first`: number of the message from which on answers are learned."""
        if (
            not isinstance(messages, list)
            or not messages
            or not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages)
        ):
            raise Broken('"messages" is not a list of {"role": …, "content": …}')
        if any(
            isinstance(m.get("content"), list) and any(not isinstance(p, dict) or p.get("type") != "text" for p in m["content"])
            for m in messages
        ):
            raise Broken("a message has a part that is not text: pictures in chats are not prepared, only pictures with labels")
        answers = [n for n, m in enumerate(messages) if m["role"] == "assistant" and n >= first]
        if not answers and self._settings.learn != "all":
            raise Broken("no message of the role assistant, so there is nothing to learn")
        if self._settings.learn == "last":
            answers = answers[-1:]
        more = {"tools": line["tools"]} if line.get("tools") else {}
        text = self._rendered(messages, **more)
        self._sound(text)
        if self._settings.learn == "all":
            return Text(number, text, None, whole=True)
        if self._says_itself and first == 0 and self._settings.learn == "answers":
            read = self._tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, **more)
            return Text(number, text, None, True, list(read["assistant_masks"]), list(read["input_ids"]))
        return Text(number, text, [self._answer(messages, n, text, more) for n in answers], whole=True)

    def _answer(self, messages: list, n: int, text: str, more: dict) -> tuple:
        """Where message `n` is in `text`: after the template's generation prompt, up to the end of its turn."""
        before = self._rendered(messages[:n], add_generation_prompt=True, **more) if n else ""
        upto = text if n == len(messages) - 1 else self._rendered(messages[: n + 1], **more)
        if n == 0:  # there is no question: the start of the turn can't be told from it
            begin = text.find(str(messages[0].get("content")))
            before = text[: max(begin, 0)]
        if not text.startswith(before) or not text.startswith(upto) or len(upto) < len(before):
            raise Broken(
                f"the chat template writes message {n + 1} in another way once others follow, so where the answer stands is not "
                "known; prepare with --learn last"
            )
        return len(before), len(upto)

    def _rendered(self, messages: list, **more) -> str:
        try:
            return self._tokenizer.apply_chat_template(messages, tokenize=False, **more)
        except Exception as problem:  # noqa: BLE001 (templates raise what they like)
            raise Broken(
                f"the chat template refuses it: {str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__}"
            ) from None

    # tokens of the text

    def _mask(self, text: Text, offsets: list) -> list:
        """1 for a token that contains a learned character, even if it also contains the end of a prompt."""
        if text.spans is None:
            return [1] * len(offsets)
        mask = [0] * len(offsets)
        for begin, end in text.spans:
            for n, (a, b) in enumerate(offsets):
                # Some tokenizers leave white space out of a token's character range; a token of white space only is an empty range at its
                # end.
                if (a < end and b > begin) if a < b else begin < a <= end:
                    mask[n] = 1
        return mask

    def _pieces(self, text: Text, report: dict) -> list:
        tokens, learned, room = text.tokens, text.learned, self._settings.max_length
        eos = self._tokenizer.eos_token_id
        if self._settings.eos and eos is not None and not text.whole and (not tokens or tokens[-1] != eos):
            tokens, learned = tokens + [eos], learned + [1]
        if len(tokens) > room:
            if self._settings.long == "skip":
                skip(report, text.line, f"{len(tokens)} tokens, more than {room}")
                return []
            report["cut" if self._settings.long == "cut" else "split"] += 1
        ends = range(0, len(tokens), room) if self._settings.long == "split" else (0,)
        pieces = [Sample(text.line, tokens[at : at + room], learned[at : at + room]) for at in ends]
        pieces = [piece for piece in pieces if any(piece.learned[1:])]  # the first token is never predicted
        if not pieces:
            skip(report, text.line, "nothing to learn is left in it")
        return pieces

    # shards and manifest

    def shard(self, samples: list, report: dict) -> bytes:
        """The shard's bytes; `report` gets the counts."""
        rows = packed(samples, self._settings.max_length) if self._settings.packing else [[sample] for sample in samples]
        report.update(
            rows=len(rows),
            samples=len(samples),
            tokens=sum(len(sample.tokens) for sample in samples),
            learned=sum(sum(sample.learned[1:]) for sample in samples),
            longest=max((sum(len(sample.tokens) for sample in row) for row in rows), default=0),
            largest=max((max(sample.tokens) for sample in samples), default=0),
        )
        return shard_bytes(rows)

    @staticmethod
    def about(reports: list) -> dict:
        """Sums over all shards."""
        return {"format": "nanquest.prepared", **{name: max(report[name] for report in reports) for name in ("longest", "largest")}}

    def told(self, manifest: dict, size: str) -> list:
        """Lines for the user."""
        total = manifest["total"]
        lines = [
            f"prepared         {total['samples']} samples in {total['rows']} rows, {total['tokens']} tokens, {total['learned']} of them learned; {size}"
        ]
        for name, word in (("cut", "cut off"), ("split", "split")):
            if total[name]:
                lines.append(
                    f"{word:<16} {total[name]} line{'' if total[name] == 1 else 's'} with more than {self._settings.max_length} tokens (--max-length)"
                )
        return lines
