"""Lines of docs/evidence.md's table of features, out of rows of run.py (results.jsonl)."""


def cell(verdict):
    if verdict is None:
        return ""
    if "trouble" in verdict:
        return verdict["trouble"]
    if verdict["bit_exact"]:
        return str(verdict["outputs_compared"])
    return f"{verdict['mismatched']} of {verdict['outputs_compared']} differ"


def lines_of(rows):
    """| feature | outputs of a watched step | survivors of another | opaque |; numbers are equal ones, bit for bit."""
    lines = ["| feature | outputs of a watched step | survivors of another | kept as opaque |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda r: r["spec"].lower()):
        opaque = sorted({op for kind in ("watched", "unwatched") for op in row.get(kind, {}).get("opaque", [])})
        name = row["spec"].removeprefix("feature/") + ("" if row["bitwise"] else " (changes the training)")
        lines.append(f"| {name} | {cell(row.get('watched'))} | {cell(row.get('unwatched'))} | {', '.join(opaque)} |")
    return lines
