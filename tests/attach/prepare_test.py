"""nanquest prepare: its tokens are those of transformers, its masks right at borders, and the trainer reads what was written."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from attached import BIN, PACKAGE, PACKAGES, PackagesTest, importable, main

sys.path[1:1] = [str(PACKAGE)]
sys.path.append(PACKAGES)
ROWS = os.environ.get("NANQUEST_TEST_ROWS", str(BIN / "tests" / "print_rows"))
TEMPLATE = ("{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token if m['role'] == 'assistant' }}\n"
            "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
MARKED = ("{% for m in messages %}<|{{ m['role'] }}|>{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}{{ eos_token }}"
          "{% endgeneration %}{% else %}{{ m['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
FORGETS = ("{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] if loop.last or m['role'] == 'user' else '…' }}{{ eos_token }}{% endfor %}"
           "{% if add_generation_prompt %}<|assistant|>{% endif %}")
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "it falls again"},
        {"role": "user", "content": "and then?"}, {"role": "assistant", "content": "the loss grows 🙂"}]


def byte_level():
    """GPT-2's and Llama 3's kind."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train_from_iterator(["the loss of a run grows and then it falls again say yes no maybe "] * 20, trainers.BpeTrainer(
        vocab_size=340, special_tokens=["<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def metaspace():
    """Llama 2's kind: a blank before the text, bytes for what it doesn't know."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.train_from_iterator(["the loss of a run grows and then it falls again say yes: no? maybe"] * 20, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "<|user|>", "<|assistant|>"]))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


@unittest.skipUnless(importable("transformers"), "transformers is not installed")
class PrepareTest(PackagesTest):
    def model(self, kind=byte_level, template=TEMPLATE, context=256):
        from transformers import PreTrainedTokenizerFast
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=kind(), bos_token="<s>", eos_token="</s>", pad_token="</s>")
        tokenizer.chat_template = template
        tokenizer.save_pretrained(self.scratch / "model")
        (self.scratch / "model" / "config.json").write_text(json.dumps(
            {"model_type": "llama", "vocab_size": len(tokenizer), "max_position_embeddings": context}))
        return tokenizer

    def data(self, *lines, name="x.jsonl"):
        (self.scratch / name).write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.scratch)

    def prepare(self, *options, code=0, out="out"):
        """The command in this process, which has imported transformers already."""
        from nanquest import cli
        said, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            ended = cli.main(["prepare", "--model", "model", "--data", "x.jsonl", "--out", out, *options])
        process = subprocess.CompletedProcess(options, ended, said.getvalue(), told.getvalue())
        self.assert_exit(process, code)
        return process

    def rows(self, out="out"):
        """By id, as the trainer reads them."""
        process = subprocess.run([ROWS, out, "16"], cwd=self.scratch, text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)
        return {row["id"]: row for row in map(json.loads, process.stdout.splitlines())}

    def expect(self, row, tokens, learned):
        """The tokens, and the targets after each: -100 but where the next token is learned."""
        self.assertEqual(row["tokens"] + [tokens[-1]], tokens)
        self.assertEqual(row["targets"], [t if is_learned else -100 for t, is_learned in zip(tokens[1:], learned[1:])])

    def test_tokens_and_masks_are_those_of_transformers(self):
        for kind in (byte_level, metaspace):
            with self.subTest(kind.__name__):
                tokenizer = self.model(kind)
                eos = tokenizer.eos_token_id
                self.data({"text": "the loss of a run 🙂 grows é"}, "", {"prompt": "say yes:", "completion": " yes é"},
                          {"prompt": "say no", "completion": "thing"}, {"messages": CHAT},
                          {"prompt": CHAT[:3], "completion": CHAT[3:]})
                self.prepare(out=kind.__name__)
                rows = self.rows(kind.__name__)
                self.assertEqual(sorted(rows), [f"x.jsonl:{n}" for n in (1, 3, 4, 5, 6)])
                tokens = tokenizer("the loss of a run 🙂 grows é")["input_ids"] + [eos]
                self.expect(rows["x.jsonl:1"], tokens, [1] * len(tokens))
                # The border lies between two tokens: what stands before it are the prompt's own.
                prompt, tokens = tokenizer("say yes:")["input_ids"], tokenizer("say yes: yes é")["input_ids"] + [eos]
                self.assertEqual(tokens[:len(prompt)], prompt)
                self.expect(rows["x.jsonl:3"], tokens, [0] * len(prompt) + [1] * (len(tokens) - len(prompt)))
                # The border lies in a token: it is learned, as a part of it is the completion's.
                tokens = tokenizer("say nothing")["input_ids"] + [eos]
                ends = tokenizer("say nothing", return_offsets_mapping=True)["offset_mapping"] + [(11, 12)]
                self.expect(rows["x.jsonl:4"], tokens, [b > len("say no") for _, b in ends])
                # A chat: the answers with the end of their turns, nothing of what asks for them.
                text = tokenizer.apply_chat_template(CHAT, tokenize=False)
                tokens = tokenizer.apply_chat_template(CHAT, tokenize=True)["input_ids"]
                turns = text.split("<|assistant|>")
                self.assertEqual(len(turns), 3)
                begin = len(turns[0]) + len("<|assistant|>")
                first = range(begin, text.index("<|user|>", begin))
                last = range(text.rindex("<|assistant|>") + len("<|assistant|>"), len(text))
                ends = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
                answers = [a < b and (b - 1 in first or b - 1 in last) for a, b in ends]
                self.expect(rows["x.jsonl:5"], tokens, answers)
                if kind is byte_level:  # the other's trainer takes its bytes for special tokens
                    learned = tokenizer.decode([t for t in rows["x.jsonl:5"]["targets"] if t != -100])
                    self.assertEqual(learned, "it falls again</s>\nthe loss grows 🙂</s>\n")
                self.expect(rows["x.jsonl:6"], tokens, [a < b and b - 1 in last for a, b in ends])

    def test_a_template_that_says_itself_what_is_learned(self):
        tokenizer = self.model(template=MARKED)
        self.data({"messages": CHAT})
        self.prepare()
        read = tokenizer.apply_chat_template(CHAT, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        self.assertIn(1, read["assistant_masks"])
        self.expect(self.rows()["x.jsonl:1"], read["input_ids"], read["assistant_masks"])

    def test_a_template_that_forgets_is_told_of(self):
        tokenizer = self.model(template=FORGETS)
        self.data({"messages": CHAT})
        self.assertIn("--learn last", self.prepare(code=3).stderr)
        self.prepare("--learn", "last")
        learned = [t for t in self.rows()["x.jsonl:1"]["targets"] if t != -100]
        self.assertEqual(tokenizer.decode(learned), "the loss grows 🙂</s>")

    def test_packed_rows_hold_the_same_texts(self):
        tokenizer = self.model()
        texts = [f"run {'and then it falls again ' * (n % 7)}{n}" for n in range(60)]
        self.data(*({"text": text} for text in texts))
        self.prepare("--packing", "--max-length", "64")
        rows, seen = self.rows(), {}
        self.assertLess(len(rows), 40)
        for name, row in rows.items():
            self.assertLessEqual(len(row["tokens"]), 63)
            lines = [int(line) for line in name.removeprefix("x.jsonl:").split("+")]
            last = row["targets"][-1]
            for number, line in enumerate(lines):
                places = [n for n, text in enumerate(row["texts"]) if text == number]
                self.assertEqual([row["positions"][n] for n in places], list(range(len(places))))
                tokens = [row["tokens"][n] for n in places] + ([last] if number == len(lines) - 1 else [])
                inner = [row["targets"][n] for n in places]
                # Of a text before another the last token has no target: the other's first does not follow from it.
                self.assertEqual(inner, tokens[1:] + ([] if number == len(lines) - 1 else [-100]))
                seen[line] = tokens
        self.assertEqual(seen, {n + 1: tokenizer(text)["input_ids"] + [tokenizer.eos_token_id] for n, text in enumerate(texts)})

    def test_long_lines(self):
        tokenizer = self.model()
        text = "the loss of a run grows " * 8
        self.data({"text": text}, {"prompt": text, "completion": "yes"}, {"text": "short"})
        whole = tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]
        process = self.prepare("--max-length", "16", code=1, out="cut")
        self.assertIn("x.jsonl:2: nothing to learn is left in it", process.stdout)
        self.assertEqual(sorted(rows := self.rows("cut")), ["x.jsonl:1", "x.jsonl:3"])
        self.expect(rows["x.jsonl:1"], whole[:16], [1] * 16)
        self.prepare("--max-length", "16", "--long", "split", out="split")
        pieces = [json.loads(line) for line in subprocess.run([ROWS, "split", "16"], cwd=self.scratch, text=True, capture_output=True,
                                                              check=True).stdout.splitlines()]
        firsts = sorted(piece["tokens"] + piece["targets"][-1:] for piece in pieces if piece["id"] == "x.jsonl:1")
        self.assertEqual(firsts, sorted(whole[n:n + 16] for n in range(0, len(whole), 16)))
        process = self.prepare("--max-length", "16", "--long", "skip", code=1, out="skip")
        self.assertEqual(list(self.rows("skip")), ["x.jsonl:3"])
        self.assertIn("more than the 256 tokens", self.prepare("--max-length", "512", code=2, out="none").stderr)

    def test_lines_that_cannot_be_used_are_named(self):
        self.model()
        broken = {'{"text": ': "not JSON: Expecting value at character 9", "[1]": "not a JSON object", '{"a": 1}': "it holds a: write",
                  '{"text": 3}': '"text" is not text', '{"prompt": "a", "completion": ["b"]}': "must both be text",
                  '{"messages": [{"role": "user", "content": "a"}]}': "no message of the role assistant",
                  '{"messages": "a"}': '"messages" is not a list', '{"image": "a.png", "label": 1}': "a picture among lines of text",
                  '{"text": "\\ud800"}': "surrogate", "[" * 5000: "nested too deeply",
                  '{"messages": [{"role": "user", "content": [{"type": "image"}]}]}': "pictures in chats are not prepared"}
        for line, why in broken.items():
            with self.subTest(why):
                self.data({"text": "a run"}, line)
                process = self.prepare(code=3)
                self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
                self.assertIn("nanquest: x.jsonl:2: ", process.stderr)
                self.assertIn(why, process.stderr)
                self.assertFalse((self.scratch / "out" / "manifest.json").exists())
        (self.scratch / "x.jsonl").write_bytes(b'{"text": "a run"}\n{"text": "\xff"}\n')
        self.assertIn("x.jsonl:2: not UTF-8", self.prepare(code=3).stderr)
        self.data({"text": "a run"}, *broken)
        process = self.prepare("--skip-broken", code=1)
        self.assertIn(f"passed over      {len(broken)} lines; the first: x.jsonl:2: not JSON", process.stdout)
        self.assertEqual(list(self.rows()), ["x.jsonl:1"])
        manifest = json.loads((self.scratch / "out" / "manifest.json").read_text())
        self.assertEqual([line for line, _ in manifest["skipped"]], [f"x.jsonl:{n + 2}" for n in range(len(broken))])

    def test_what_is_missing_is_named(self):
        self.model()
        self.data({"text": "a run"})
        for arguments, code, what in ((("--model", "none"), 3, "none: no such folder"), (("--data", "none.jsonl"), 3, "none.jsonl: no such file"),
                                      (("--packing", "--length-groups", "8"), 2, "give one of the two"), (("--question", "Why?"), 2, "--question is for pictures")):
            process = self.prepare(*arguments, code=code)
            self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
            self.assertIn(what, process.stderr)
        (self.scratch / "full").mkdir()
        (self.scratch / "full" / "mine").write_text("")
        self.assertIn("full is not empty and holds no prepared data", self.prepare(out="full", code=2).stderr)
        environment = self.environment()
        environment["PYTHONPATH"] = environment["PYTHONPATH"].replace(PACKAGES, "") if PACKAGES else environment["PYTHONPATH"]
        if PACKAGES:
            process = subprocess.run([sys.executable, "-m", "nanquest", "prepare", "--model", "model", "--data", "x.jsonl", "--out", "out"],
                                     cwd=self.scratch, text=True, capture_output=True, timeout=60, env=environment, check=False)
            self.assert_exit(process, 2)
            self.assertIn("has no transformers; pip install transformers", process.stderr)

    def files(self, out):
        return {path.name: path.read_bytes() for path in (self.scratch / out).iterdir()}

    def test_it_goes_on_where_it_was_interrupted(self):
        self.model()
        line = json.dumps({"text": "the loss of a run grows and then it falls again " * 40}) + "\n"
        (self.scratch / "x.jsonl").write_text(line * 1500)
        self.prepare("--processes", "1", out="whole")
        command = [sys.executable, "-m", "nanquest", "prepare", "--model", "model", "--data", "x.jsonl", "--out", "out", "--processes", "1"]
        process = subprocess.Popen(command, cwd=self.scratch, env=self.environment(), text=True, stderr=subprocess.PIPE)
        until = time.monotonic() + 60
        while not list(self.scratch.glob("out/shard-*.bin")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("interrupted; the same command goes on", said)
        there = {path.name: path.stat().st_mtime_ns for path in self.scratch.glob("out/shard-*.bin")}
        self.assertLess(len(there), len(list(self.scratch.glob("whole/shard-*.bin"))))
        self.assertIn("shards are there already", self.prepare("--processes", "2").stderr)
        for name, then in there.items():
            self.assertEqual((self.scratch / "out" / name).stat().st_mtime_ns, then, "made only once")
        self.assertEqual(self.files("out"), self.files("whole"), "the same bytes from two processes as from one, and nothing beside them")
        before = (self.scratch / "out" / "manifest.json").stat().st_mtime_ns
        self.prepare()
        self.assertEqual((self.scratch / "out" / "manifest.json").stat().st_mtime_ns, before, "nothing to do")
        self.assertIn("give --overwrite", self.prepare("--max-length", "32", code=2).stderr)
        self.prepare("--max-length", "32", "--overwrite")
        self.assertEqual(max(len(row["tokens"]) for row in self.rows().values()), 31)

    def test_a_full_disk_leaves_nothing_half_written(self):
        self.model()
        self.data(*({"text": f"the loss of a run grows {n}"} for n in range(2000)))
        full = ("import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
                "from nanquest.cli import main; sys.exit(main(sys.argv[1:]))")
        process = subprocess.run([sys.executable, "-c", full, "prepare", "--model", "model", "--data", "x.jsonl", "--out", "out"],
                                 cwd=self.scratch, text=True, capture_output=True, timeout=120, env=self.environment(), check=False)
        self.assert_exit(process, 3)
        self.assertIn("File too large; the same command goes on once that is mended", process.stderr)
        self.assertEqual([name for name in self.files("out") if name.endswith((".part", ".bin"))], [])
        self.prepare()
        self.assertEqual(len(self.rows()), 2000)


if __name__ == "__main__":
    main()
