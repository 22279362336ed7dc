"""Healthy programs of several processes: the probe changes no bit of a weight of any rank, and the recorded step of every rank comes back
bit for bit in a process without Python, from its file alone and with those of the others, the collectives done again.

usage: exact_test.py [--all [--table]] [--only WAY]      (--all: every way of ways.py; --table: and into the README)

Each is trained as exact.py says, at level watch, where every written output of step 1 is compared, and at level trace, where what
survived of step 4 is.
"""

import itertools
import sys

from together import TogetherTest, different

import in_readme
from attached import main
from exact import STEPS

ALL, TABLE = "--all" in sys.argv, "--table" in sys.argv
ONLY = sys.argv.pop(sys.argv.index("--only") + 1) if "--only" in sys.argv else None
BEGIN = "<!-- coverage: written by tests/attach/ddp/exact_test.py --all --table -->"
LEVELS = {"watch": (1, "every_output"), "trace": (4, "survivors")}  # which step is recorded, and what of it is compared
SPECS = [f"{kind}/{form}" for kind, form in itertools.product(("adamw", "sgd"), ("fp32", "bf16"))]
WAYS = (
    ("ddp", 2, "DDP"),
    ("ddp+clip", 2, "DDP, clipped"),
    ("accumulated", 2, "DDP, two batches a step (`no_sync`)"),
    ("averaged", 2, "weights averaged after each update"),
    ("fsdp1+clip", 2, "FSDP1, clipped"),
    ("fsdp2", 2, "FSDP2"),
    ("fsdp2+clip", 2, "FSDP2, clipped"),
    ("offload", 2, "FSDP2, CPU offload"),
    ("hsdp", 4, "HSDP, 2 × 2"),
    ("tensor", 2, "tensor parallel"),
    ("sequence", 2, "tensor and sequence parallel"),
    ("both", 4, "FSDP2 × tensor parallel, 2 × 2"),
    ("pipeline", 2, "pipeline, GPipe"),
    ("pipeline", 4, "pipeline, 1F1B"),
)
FEW = (("accumulated", 2), ("fsdp2+clip", 2))
CHOSEN = [row for row in WAYS if (row[0] == ONLY if ONLY else ALL or row[:2] in FEW)]


class ExactTest(TogetherTest):
    program = "exact.py"

    def setUp(self):
        super().setUp()
        self.trouble, self.outputs = {}, {}  # of (way, ranks, spec, rank)

    def wrong(self, key, what):
        self.trouble.setdefault(key, []).append(what)
        print(*key, what, file=sys.stderr, flush=True)

    def test_every_rank(self):
        for way, ranks, _ in CHOSEN:
            self.together(way, "plain", *SPECS, ranks=ranks)
            for level in LEVELS if ALL or ONLY else ["watch"]:
                self.observed_ranks(way, ranks, level)
            print(way, ranks, {spec: [self.outputs.get((way, ranks, spec, rank)) for rank in range(ranks)] for spec in SPECS},
                  file=sys.stderr, flush=True)
        print("\n".join(table := self.table()))
        self.assertEqual(self.trouble, {})
        if TABLE:
            in_readme.put(BEGIN, table)

    def observed_ranks(self, way, ranks, level):
        step, basis = LEVELS[level]
        steps = {spec: index * STEPS + step for index, spec in enumerate(SPECS)}
        self.clear("run")
        err = self.together(way, "seen", *SPECS, ranks=ranks,
                            options=("--level", level, "--record-steps", ",".join(map(str, steps.values()))))
        self.assertNotIn("the probe is off", err)
        self.assertEqual(self.incidents(), [], err)
        recordings = self.scratch / "run" / "recordings"
        for rank, (plain, seen) in enumerate(zip(self.weights("plain", ranks), self.weights("seen", ranks))):
            self.assertEqual(self.steps_seen(rank), STEPS * len(SPECS), err)
            for spec, number in steps.items():
                key, mine = (way, ranks, spec, rank), [{n: v for n, v in of.items() if n.startswith(spec)} for of in (plain, seen)]
                if not mine[0] or different(*mine):
                    self.wrong(key, f"{level}: weights differ from those without the probe: {different(*mine)[:3]}")
                file = recordings / f"step-{number:08}.r{rank}.h5"
                if not file.exists():
                    self.wrong(key, f"{level}: step {number} was not recorded: {err[-300:]}")
                    continue
                verdict = self.replay("verify", file)
                if (verdict["bit_exact"], verdict["basis"], verdict["failed_ops"]) != (True, basis, 0) or not verdict["outputs_compared"]:
                    self.wrong(key, f"{level}: {verdict}")
                if level == "watch":
                    self.outputs[key] = verdict["outputs_compared"]
        for spec, number in steps.items():
            files = sorted(recordings.glob(f"step-{number:08}.r*.h5"))
            verdict = self.replay("ranks", *files, "--no-files")
            follows = [(each["op"], each["follows"]) for each in verdict["collectives"] if each["follows"] not in ("exact", "within")]
            if (verdict["finding"], verdict["missing"]) != ("none", []):
                self.wrong((way, ranks, spec, "all"), f"{level}: {verdict}")
            elif follows:
                print(way, ranks, spec, "not done again:", follows, file=sys.stderr)

    def steps_seen(self, rank):
        import h5py
        with h5py.File(self.scratch / "run" / f"series.r{rank}.h5") as series:
            return len(series["history/scalars/values"])

    def table(self):
        good = lambda way, ranks, spec: sum((way, ranks, spec, rank) not in self.trouble for rank in range(ranks))  # noqa: E731
        names = [spec.replace("adamw/", "AdamW ").replace("sgd/", "SGD ") for spec in SPECS]
        lines = [f"| processes | | {' | '.join(names)} | outputs of a rank's step |", "|---|---|" + "---|" * len(SPECS) + "---|"]
        for way, ranks, label in CHOSEN:
            counts = [count for key, count in self.outputs.items() if key[:2] == (way, ranks)]
            lines.append(f"| {label} | {ranks} | {' | '.join(f'{good(way, ranks, spec)}/{ranks}' for spec in SPECS)} | "
                         f"{min(counts, default=0)} to {max(counts, default=0)} |")
        return lines


if __name__ == "__main__":
    sys.argv = [each for each in sys.argv if each not in ("--all", "--table", "--only")]
    main()
