#!/usr/bin/env python3
"""Fits the weights of a verdict's confidence (replay/verdict/confidence.cpp) on what run.py kept, and prints how well it holds for
families that were not fitted on.

  calibrate.py build/faultbench                # after run.py; both levels as far as they are there
  calibrate.py build/faultbench --wrong 0.05   # if 5 % of the verdicts that name a cause were wrong (12 %)
  calibrate.py build/faultbench --parts DIR …  # and on parts that somebody else wrote, as they came when they were opened
  calibrate.py OUT --parts DIR …               # where OUT holds no bench: on these alone, and BENCH is what is known before

Each incident is replayed twice: as it is, and with its right causes left out (nanquest-replay --without), which is how a failure is
judged that is of no known kind. Verdicts of the second sort that name a cause are wrong. They count less, so that `--wrong` of all
are. A part (DIR: truth.json, trace/results.json and trace/NAME/verdict.json, as sealed/run.py leaves them) counts as it is, one a
verdict; a wrong one that today's rules do not name any more counts `--mended`, because a rule that was mended on these very programs
will be wrong on others. The weights have a normal prior (PRIOR, variance 1), as some facts hardly
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

FACTS = ("deep", "agrees", "helps", "verified", "same_event", "in_step")
PRIOR = (0.0, 1.0, 1.5, 0.5, 0.5, 1.0, 1.0)  # of the base, which is free, and of each fact
BENCH = (-2.91, 2.02, 1.50, 0.99, 1.16, 1.00, 1.0)  # fitted on faultbench, 27 November 2026; of `in_step` nothing was known
KNOWN = (1e6,) * 6 + (1.0,)  # … and how firm that is
FREE = 1e-3
FIRM = (FREE,) + (1.0,) * 6
NOT_SEEN = 0.75


def verdict_of(file, without):
    options = [word for cause in without for word in ("--without", cause)]
    done = subprocess.run([programs.BIN / "nanquest-replay", file, "--json", "-q", "--no-files", *options], capture_output=True, text=True,
                          env=programs.environment(), timeout=600)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def columns(shown):
    return [float(shown[f]) - (f == "in_step") for f in FACTS]


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
                             "planned": bool(without), "facts": columns(verdict["shown"])})
    return rows


def in_step(verdict, cause):
    """What Shown::in_step says, of files that are older than it."""
    depths = [claim.get("depth") for claim in verdict["claims"] if claim["cause"] == cause]
    return float(cause not in ("BAD_DATA", "BAD_STATE") or depths[:1] in (["source"], ["meaning"]))


def rows_of_part(folder):
    """The same of those that name a cause, in a part that was opened; `mended`: wrong then, and not named so today."""
    rows = []
    for truth in json.loads((folder / "truth.json").read_text()):
        name = pathlib.Path(truth["file"]).stem
        file = folder / "trace" / name / "verdict.json"
        verdict = json.loads(file.read_text()) if file.exists() else {}
        cause = verdict.get("cause")
        if not verdict.get("shown") or cause in (None, "UNKNOWN"):
            continue
        right = cause in {truth["cause"], *truth["cause_alternatives"]} - {"UNKNOWN"}
        files = sorted(p for p in (file.parent / "run" / "incidents").glob("step-*.h5") if not p.name.endswith(".replay.h5"))
        now = None if right or not files else verdict_of(files[0], ())
        facts = {"in_step": in_step(verdict, cause), **verdict["shown"]}
        if not facts["in_step"]:  # as Shown has it today
            facts.update(helps=NOT_SEEN, verified=NOT_SEEN, same_event=1)
        rows.append({"family": folder.name, "name": name, "level": "trace", "cause": cause, "right": right, "planned": False,
                     "part": folder.name, "said": verdict["confidence"],
                     "mended": bool(now) and now["cause"] != cause, "facts": columns(facts)})
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


def fitted(rows, weight, prior=PRIOR, firm=FIRM):
    """Newton's method on the penalised likelihood."""
    n = len(prior)
    weights = list(prior)
    for _ in range(100):
        gradient = [-firm[i] * (weights[i] - prior[i]) for i in range(n)]
        hessian = [[firm[i] if i == j else 0.0 for j in range(n)] for i in range(n)]
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
    parser.add_argument("--parts", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--mended", type=float, default=0.5)
    parser.add_argument("--wrong", type=float, default=0.12)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    kept = options.out / "calibrate.json"
    if not options.again:
        options.out.mkdir(parents=True, exist_ok=True)
        rows = rows_of(options.out, "seen") if (options.out / "programs").exists() else []
        for part in options.parts:
            rows += rows_of_part(part.resolve())
        kept.write_text(json.dumps(rows, indent=1))
    rows = json.loads(kept.read_text())
    bench, parts = [row for row in rows if "part" not in row], [row for row in rows if "part" in row]
    known = (PRIOR, FIRM) if bench else (BENCH, KNOWN)
    right = sum(row["right"] for row in bench)
    each = options.wrong / (1 - options.wrong) * right / max(len(bench) - right, 1)

    def weight(row):
        if "part" in row:
            return options.mended if row["mended"] else 1.0
        return 1.0 if row["right"] else each

    print("weights: base", *(f"{n} {w:.2f}" for n, w in zip(("", *FACTS), fitted(rows, weight, *known))))
    judged = []
    for family in sorted({row["family"] for row in rows}):  # a part is judged by weights that were fitted without it
        weights = fitted([row for row in rows if row["family"] != family], weight, *known)
        judged += [(chance(weights, row["facts"]), row) for row in rows if row["family"] == family]
    for what, of, counts in (("all", rows, weight), ("parts, as they were opened", parts, lambda _: 1.0)):
        if not of:
            continue
        lines, error = table([(p, row) for p, row in judged if row in of], counts)
        wrong = sum(not row["right"] for row in of)
        print(f"\n{what}: {len(of)} verdicts of {len({row['family'] for row in of})} families, {wrong} wrong; each family by weights fitted "
              "on the others\n")
        print("| confidence, per cent | verdicts | share of the weight | said | right |\n|---|---|---|---|---|", *lines, sep="\n")
        print(f"\nexpected calibration error {error:.3f}")


if __name__ == "__main__":
    main()
