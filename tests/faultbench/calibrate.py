#!/usr/bin/env python3
"""Fits the weights of a verdict's confidence (replay/verdict/confidence.cpp) on what run.py kept, and prints how well it holds for
families that were not fitted on.

  calibrate.py build/faultbench                # after run.py; both levels as far as they are there
  calibrate.py build/faultbench --wrong 0.05   # if 5 % of the verdicts that name a cause were wrong (8 %)

Each incident is replayed twice: as it is, and with its right causes left out (nanquest-replay --without), which is how a failure is
judged that is of no known kind. Verdicts of the second sort that name a cause are wrong. They count less, so that `--wrong` of all
are: in programs of other people between 3 and 10 % were. The weights have a normal prior (PRIOR, variance 1), as some facts hardly
differ in the bench. Replays are kept in OUT/calibrate.json; a second call with --again reads that.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import plan  # noqa: E402
import programs  # noqa: E402

FACTS = ("deep", "agrees", "helps", "verified", "same_event")
PRIOR = (0.0, 1.0, 1.5, 0.5, 0.5, 1.0)  # of the base, which is free, and of each fact
FREE = 1e-3


def verdict_of(file, without):
    options = [word for cause in without for word in ("--without", cause)]
    done = subprocess.run([programs.BIN / "nanquest-replay", file, "--json", "-q", "--no-files", *options], capture_output=True, text=True,
                          env=programs.environment(), timeout=600)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def rows_of(out, half):
    """(family, right, facts) of each verdict that names a cause, or would if it were sure enough."""
    rows = []
    for play in plan.plays(half):
        truth = play.case.truth
        right = {truth.cause, *truth.also} - {"", "UNKNOWN"}
        for level in ("watch", "trace"):
            folder = out / "programs" / re.sub(r"[^\w=.-]", "_", play.name) / level / "run" / "incidents"
            files = sorted(p for p in folder.glob("step-*.h5") if not p.name.endswith(".replay.h5"))
            if not truth.cause or not files:
                continue
            for without in ((), sorted(right)):
                verdict = verdict_of(files[0], without)
                if not verdict or not verdict.get("shown"):
                    continue
                cause = (verdict.get("likely") or verdict)["cause"]
                rows.append({"family": play.family, "name": play.name, "level": level, "cause": cause, "right": cause in right,
                             "planned": bool(without), "facts": [float(verdict["shown"][f]) for f in FACTS]})
    return rows


def chance(weights, facts):
    return 1 / (1 + math.exp(-weights[0] - sum(w * f for w, f in zip(weights[1:], facts))))


def solved(matrix, right):
    """Gauss and Jordan; the matrix is positive definite."""
    n = len(right)
    rows = [[*line, right[i]] for i, line in enumerate(matrix)]
    for i in range(n):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[n] for row in rows]


def fitted(rows, weight):
    """Newton's method on the penalised likelihood."""
    n = len(PRIOR)
    weights = list(PRIOR)
    for _ in range(100):
        gradient = [-(FREE if i == 0 else 1) * (weights[i] - PRIOR[i]) for i in range(n)]
        hessian = [[(FREE if i == 0 else 1.0) if i == j else 0.0 for j in range(n)] for i in range(n)]
        for row in rows:
            x, p, w = [1.0, *row["facts"]], chance(weights, row["facts"]), weight(row)
            for i in range(n):
                gradient[i] += w * (row["right"] - p) * x[i]
                for j in range(n):
                    hessian[i][j] += w * p * (1 - p) * x[i] * x[j]
        step = solved(hessian, gradient)
        weights = [a + b for a, b in zip(weights, step)]
        if max(map(abs, step)) < 1e-9:
            break
    return weights


def table(judged, weight):
    """Ten bins of (chance, row): lines, and the expected calibration error."""
    lines, error, total = [], 0.0, sum(weight(row) for _, row in judged)
    for low in range(10):
        inside = [(p, row) for p, row in judged if min(9, int(p * 10)) == low]
        of = sum(weight(row) for _, row in inside)
        if inside:
            said = sum(p * weight(row) for p, row in inside) / of
            right = sum(weight(row) for _, row in inside if row["right"]) / of
            error += of / total * abs(said - right)
            lines.append(f"| {10 * low} to {10 * low + 10} | {len(inside)} | {100 * of / total:.0f} | {100 * said:.0f} | {100 * right:.0f} |")
    return lines, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--wrong", type=float, default=0.08)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    kept = options.out / "calibrate.json"
    if not options.again:
        kept.write_text(json.dumps(rows_of(options.out, "seen"), indent=1))
    rows = json.loads(kept.read_text())
    right = sum(row["right"] for row in rows)
    wrong = len(rows) - right
    each = options.wrong / (1 - options.wrong) * right / max(wrong, 1)

    def weight(row):
        return 1.0 if row["right"] else each

    print("weights: base", *(f"{n} {w:.2f}" for n, w in zip(("", *FACTS), fitted(rows, weight))))
    families = sorted({row["family"] for row in rows})
    judged = []
    for family in families:
        weights = fitted([row for row in rows if row["family"] != family], weight)
        judged += [(chance(weights, row["facts"]), row) for row in rows if row["family"] == family]
    lines, error = table(judged, weight)
    print(f"{len(rows)} verdicts of {len(families)} families, {wrong} wrong; each family by weights fitted on the others\n")
    print("| confidence, per cent | verdicts | share of the weight | said | right |\n|---|---|---|---|---|", *lines, sep="\n")
    print(f"\nexpected calibration error {error:.3f}")


if __name__ == "__main__":
    main()
