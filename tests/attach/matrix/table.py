"""The table of docs/evidence.md, out of the results of a run."""

import combinations
import habits
import in_docs
import models

BEGIN = "<!-- coverage: written by tests/attach/matrix/run.py --all --table -->"


def cell(rows):
    """"5/5", or how many and which did not pass."""
    rows = [row for row in rows if "impossible" not in row]
    if not rows:
        return "–"
    bad = [row["spec"].split("/") for row in rows if row["trouble"]]
    text = f"{len(rows) - len(bad)}/{len(rows)}"
    names = sorted({spec[1] if spec[3] == "plain" else spec[0] for spec in bad})
    return text + (f" (not {', '.join(names)})" if bad else "")


def lines_of(results):
    parts = {spec: spec.split("/") for spec in results}
    chosen = lambda index, name, precision: [  # noqa: E731
        results[s] for s, p in parts.items() if p[index] == name and p[2] == precision and (index == 3 or p[3] == "plain")]
    lines = [f"| model × 5 optimizers | {' | '.join(combinations.PRECISIONS)} | outputs of a step |",
             "|---|" + "---|" * len(combinations.PRECISIONS) + "---|"]
    for model in models.NAMES:
        cells = [chosen(0, model, p) for p in combinations.PRECISIONS]
        counts = [row["watch"]["outputs_compared"] for rows in cells for row in rows if "outputs_compared" in row.get("watch", {})]
        if counts:
            lines.append(f"| {model} | {' | '.join(map(cell, cells))} | {min(counts)} to {max(counts)} |")
    lines += ["", f"| habit | {' | '.join(combinations.PRECISIONS)} | models |", "|---|" + "---|" * len(combinations.PRECISIONS) + "---|"]
    for habit in habits.NAMES:
        cells = [chosen(3, habit, p) for p in combinations.PRECISIONS]
        names = dict.fromkeys(row["spec"].split("/")[0] for rows in cells for row in rows)
        if names and habit != "plain":
            lines.append(f"| {habit} | {' | '.join(map(cell, cells))} | {', '.join(names)} |")
    return lines


def summary(results):
    rows = [row for row in results.values() if "impossible" not in row]
    watched = sum(row.get("watch", {}).get("outputs_compared", 0) for row in rows)
    good = [row for row in rows if not row["trouble"]]
    same = sum(all(row.get(kind, {}).get("bitwise") for kind in ("watch", "trace")) for row in rows)
    opaque = sorted({op for row in rows for kind in ("watch", "trace") for op in row.get(kind, {}).get("opaque", [])})
    return (f"{len(good)} of {len(rows)} combinations came back bit for bit in a process without Python: all {watched} "
            f"outputs of the steps at level watch were compared, and what survived of those at level trace; the weights after "
            f"five steps were those of the same program without the probe in {same} of {len(rows)}. "
            + (f"Kept as opaque: {', '.join(opaque)}." if opaque else "No op had to be kept as opaque.")
            + " A dash: not in this run, or not possible in PyTorch on this machine.")


def write(results: dict) -> None:
    """Puts the table between its markers."""
    in_docs.put(BEGIN, [summary(results), "", *lines_of(results)])
