"""Healthy programs of several processes: the probe changes no bit of a weight of any rank, and the recorded step of every rank comes back
bit for bit in a process without Python, from its file alone and with those of the others, the collectives done again.

usage: exact_test.py [--all [--table]] [--only WAY]      (--all: every way of ways.py; --table: and into docs/evidence.md)

Each is trained as exact.py says, at level watch, where every written output of step 1 is compared, and at level trace, where what
survived of step 4 is.
"""

import collections
import sys

from together import TogetherTest, different

import in_docs
from attached import main
from exact import STEPS

ALL, TABLE = "--all" in sys.argv, "--table" in sys.argv
ONLY = sys.argv.pop(sys.argv.index("--only") + 1) if "--only" in sys.argv else None
BEGIN = "<!-- coverage: written by tests/attach/ddp/exact_test.py --all --table -->"
LEVELS = {"watch": (1, "every_output"), "trace": (4, "survivors")}  # which step is recorded, and what of it is compared
SPECS = ["adamw/fp32", "adamw/bf16", "sgd/fp32", "sgd/bf16"]
WAYS = (
    ("ddp", 2, "DDP"),
    ("ddp+clip", 2, "DDP, clipped"),
    ("accumulated", 2, "DDP, two batches a step (`no_sync`)"),
    ("averaged", 2, "weights averaged after each update"),
    ("fsdp1+clip", 2, "FSDP1, clipped"),
    ("fsdp2", 2, "FSDP2"),
    ("fsdp2+clip", 2, "FSDP2, clipped"),
    ("offload", 2, "FSDP2, `CPUOffloadPolicy` (nothing to move here)"),
    ("hsdp", 4, "HSDP, 2 × 2"),
    ("tensor", 2, "tensor parallel"),
    ("sequence", 2, "tensor and sequence parallel"),
    ("both", 4, "FSDP2 × tensor parallel, 2 × 2"),
    ("pipeline", 2, "pipeline, GPipe"),
    ("pipeline", 4, "pipeline, 1F1B"),
)
FEW = (("accumulated", 2), ("fsdp2+clip", 2))
CHOSEN = [row for row in WAYS if (row[0] == ONLY if ONLY else ALL or row[:2] in FEW)]
if not (ALL or ONLY):
    SPECS, LEVELS = SPECS[1:3], {"watch": LEVELS["watch"]}


class ExactTest(TogetherTest):
    program = "exact.py"

    def setUp(self):
        super().setUp()
        self.outputs, self.well = {}, collections.Counter()  # of (way, ranks, spec, rank): how many at level watch; at how many levels
        self.collectives, self.together_well = collections.Counter(), 0  # by (how what was recorded follows from what ranks gave, op)

    def test_every_rank(self):
        for way, ranks, _ in CHOSEN:
            with self.subTest(way, ranks=ranks):
                self.together(way, "plain", *SPECS, ranks=ranks)
                self.assert_that_formats_differ(ranks)
                for level in LEVELS:
                    self.observed_ranks(way, ranks, level)
            print(way, ranks, {spec: [self.outputs.get((way, ranks, spec, rank)) for rank in range(ranks)] for spec in SPECS},
                  file=sys.stderr, flush=True)
        table, all_well = self.table()
        print("\n".join(table))
        self.assertTrue(all_well)
        if TABLE:
            in_docs.put(BEGIN, table)

    def assert_that_formats_differ(self, ranks):
        """Programs do what their names say: of two with one optimizer, every weight of every rank ends elsewhere."""
        for weights in self.weights("plain", ranks):
            self.assertTrue(weights)
            for kind in {spec.split("/")[0] for spec in SPECS if len(SPECS) == 4}:
                ends = [{name.split()[2]: value for name, value in weights.items() if name.startswith(f"{kind}/{form} {STEPS - 1}")}
                        for form in ("fp32", "bf16")]
                held = [name for name, value in ends[0].items() if value.numel()]  # FSDP1 leaves a rank nothing of some weights
                self.assertEqual(different(*ends), held)

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
                with self.subTest(way, ranks=ranks, spec=spec, rank=rank, level=level):
                    mine = [{name: value for name, value in of.items() if name.startswith(spec)} for of in (plain, seen)]
                    self.assertTrue(mine[0])
                    self.assertEqual(different(*mine), [])  # from those without the probe
                    verdict = self.assert_bit_exact(recordings / f"step-{number:08}.r{rank}.h5")
                    self.assertEqual((verdict["basis"], verdict["failed_ops"]), (basis, 0), verdict)
                    if level == "watch":
                        self.outputs[way, ranks, spec, rank] = verdict["outputs_compared"]
                    self.well[way, ranks, spec, rank] += 1
        for spec, number in steps.items() if level == "watch" else ():
            with self.subTest(way, ranks=ranks, spec=spec, level=level):
                verdict = self.replay("ranks", *recordings.glob(f"step-{number:08}.r*.h5"), "--no-files")
                self.assertEqual((verdict["finding"], verdict["missing"]), ("none", []), verdict)
                follows = collections.Counter((each["follows"], each["op"]) for each in verdict["collectives"])
                self.assertNotIn("differs", {how for how, _ in follows}, verdict)
                self.collectives += follows
                self.together_well += 1

    def steps_seen(self, rank):
        import h5py
        with h5py.File(self.scratch / "run" / f"series.r{rank}.h5") as series:
            return len(series["history/scalars/values"])

    def table(self):
        """Lines in Markdown; whether all results are good."""
        good = lambda way, ranks, spec: sum(self.well[way, ranks, spec, rank] == len(LEVELS) for rank in range(ranks))  # noqa: E731
        names = [spec.replace("adamw/", "AdamW ").replace("sgd/", "SGD ") for spec in SPECS]
        lines = [f"| spread by | processes | {' | '.join(names)} | outputs of a rank's step |", "|---|---|" + "---|" * len(SPECS) + "---|"]
        for way, ranks, label in CHOSEN:
            counts = [count for key, count in self.outputs.items() if key[:2] == (way, ranks)]
            lines.append(f"| {label} | {ranks} | {' | '.join(f'{good(way, ranks, spec)}/{ranks}' for spec in SPECS)} | "
                         f"{min(counts, default=0)} to {max(counts, default=0)} |")
        whole = sum(ranks for _, ranks, _ in CHOSEN) * len(SPECS)
        well = sum(good(way, ranks, spec) for way, ranks, _ in CHOSEN for spec in SPECS)
        done = {way: sum(n for (follows, _), n in self.collectives.items() if follows == way) for way in ("exact", "within", "unknown")}
        unknown = ", ".join(sorted({f"`{op}`" for follows, op in self.collectives if follows == "unknown"}))
        levels = "level watch (all {} outputs compared)" + " and at level trace" * ("trace" in LEVELS)
        said = f"The step of {well} of {whole} ranks came back bit for bit in a process without Python, at " \
               f"{levels.format(sum(self.outputs.values()))}; weights after each of {STEPS} steps were those without the " \
               f"probe. With the files of all ranks, {done['exact']} collectives were done again and came out as recorded, bit for bit" \
               + (f", {done['within']} within what the order of adding can change" if done["within"] else "") \
               + (f"; as recorded stayed {done['unknown']} ({unknown})" if unknown else "") + "."
        return [said, "", *lines], well == whole and self.together_well == len(CHOSEN) * len(SPECS)


if __name__ == "__main__":
    sys.argv = [each for each in sys.argv if each not in ("--all", "--table", "--only")]
    main()
