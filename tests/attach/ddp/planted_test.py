"""Forty planted failures of several processes: the rank and the operation that were first, as the ranks' files say them together and as
that rank's own file says.

usage: planted_test.py [--seen | --unseen] [--only WAY-FAULT]      (else all)

The first four ways were looked at while this was built. The others were written down with them, and run for the first time when
nothing was changed any more.
"""

import sys

from together import TogetherTest

from attached import main

SEEN, UNSEEN = ("ddp", "fsdp2", "tensor", "pipeline"), ("accumulated", "mixed", "hsdp", "averaged")
MADE = {"log": "aten::log", "exp": "aten::exp", "root": "aten::div"}
CAME = {"weight": "parameter", "batch": "input"}
FAULTS = (*MADE, *CAME)
ONLY = sys.argv.pop(sys.argv.index("--only") + 1).split("-") if "--only" in sys.argv else None
WAYS = SEEN if "--seen" in sys.argv else UNSEEN if "--unseen" in sys.argv else SEEN + UNSEEN
LEAST = {SEEN: 20, UNSEEN: 20, SEEN + UNSEEN: 40}


class PlantedTest(TogetherTest):
    program = "planted.py"

    def says(self, first, fault):
        """Whether a culprit is what was planted."""
        if fault in MADE:
            return first.get("op") == MADE[fault] and (first.get("module") or "").endswith("spot")
        return first.get("origin") == CAME[fault] and (fault == "batch" or (first.get("tensor") or "").endswith("up.weight"))

    def tried(self, way, fault, number):
        """(rank and op are right in all ranks' files together, in that rank's own verdict; what was said)"""
        ranks, at, kind = 4 if way == "hsdp" else 2, number % 2, ("adamw", "sgd")[number // 2 % 2]
        if fault == "batch" and way == "pipeline":
            at = 0
        self.clear("run")
        err = self.together(way, fault, at, kind, options=("--level", "trace"), ranks=ranks)
        own = self.scratch / "run" / "incidents" / f"step-00000003.r{at}.h5"
        if not own.exists():
            return False, False, "no file of it: " + err[-300:]
        among = range(ranks) if fault == "batch" and way == "tensor" else (at,)  # all were given it
        together = self.replay("ranks", self.scratch / "run")
        first = together["first"] or {}
        both = first.get("rank") in among and self.says(first, fault)
        verdict = self.replay("diagnose", own, "--no-fixes", "--no-files")
        named = verdict["ranks"]["first"] or {}
        alone = named.get("rank") in among and self.says({**verdict["culprit"], "origin": verdict["origin"]}, fault)
        said = f"together {first.get('rank')} {first.get('op')} {first.get('module')} {first.get('tensor')} {first.get('origin')}; " \
               f"own {named.get('rank')} {verdict['culprit']['op']} {verdict['culprit']['module']} {verdict['culprit']['tensor']} " \
               f"{verdict['origin']} {verdict['cause']}"
        return both, alone, said

    def test_first_rank_and_op(self):
        rows = []
        for way in WAYS:
            for fault in FAULTS:
                number = (SEEN + UNSEEN).index(way) * len(FAULTS) + FAULTS.index(fault)
                if ONLY in (None, [way, fault]):
                    rows.append((way, fault, *self.tried(way, fault, number)))
                    print(*rows[-1], file=sys.stderr, flush=True)
        print("\n| ways | planted | rank and op right, all files | in that rank's own file |\n|---|---|---|---|")
        for way in WAYS:
            of = [row for row in rows if row[0] == way]
            print(f"| {way} | {len(of)} | {sum(row[2] for row in of)} | {sum(row[3] for row in of)} |")
        wrong = [row for row in rows if not (row[2] and row[3])]
        if ONLY is None:
            self.assertGreaterEqual(len(rows) - len(wrong), LEAST[WAYS], wrong)
        else:
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    sys.argv = [each for each in sys.argv if each not in ("--seen", "--unseen", "--only")]
    main()
