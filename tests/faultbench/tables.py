"""Tables of shares: averaged over families, with Wilson's interval for as many trials as there are families."""

import math
from collections import defaultdict

COLUMNS = (("found", "found"), ("step", "step"), ("phase_op", "phase+op"), ("module", "module"), ("origin", "origin"), ("cause", "cause"),
           ("wrong_cause", "wrong"), ("precision", "precision"), ("fix", "fix"), ("bit_exact", "bit-exact"), ("caught", "caught"))


def wilson(share, trials, z=1.96):
    """The 95 % interval of a share seen in `trials` trials. Wilson, E. B. (1927), J. Am. Stat. Assoc. 22."""
    if not trials:
        return 0.0, 1.0
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)


def by_family(rows, measure):
    """(mean over families of the families' own shares, families, programs) for one measure."""
    groups = defaultdict(list)
    for row in rows:
        if measure in row["marks"]:
            groups[row["family"]].append(bool(row["marks"][measure]))
    shares = [sum(g) / len(g) for g in groups.values()]
    return (sum(shares) / len(shares) if shares else None), len(shares), sum(map(len, groups.values()))


def cell(rows, measure, interval):
    share, count, _ = by_family(rows, measure)
    if share is None:
        return "-"
    low, high = wilson(share, count)
    return f"{100 * share:.0f}" + (f" [{100 * low:.0f}-{100 * high:.0f}]" if interval else "")


def grid(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def diagnosis(rows, level):
    """The table of one level: a line per label, then the total with intervals."""
    rows = [r for r in rows if r["level"] == level]
    failing = [r for r in rows if r["label"] and "found" in r["marks"]]
    lines = [[f"level {level}", "families", "programs", *(title for _, title in COLUMNS)]]
    for label in sorted({r["label"] for r in failing}):
        those = [r for r in failing if r["label"] == label]
        lines.append([label, str(len({r["family"] for r in those})), str(len(those)), *(cell(those, m, False) for m, _ in COLUMNS)])
    families = len({r["family"] for r in failing})
    lines.append(["all failing", str(families), str(len(failing)), *(cell(failing, m, False) for m, _ in COLUMNS)])
    lines.append(["  95 % by family", "", "", *(cell(failing, m, True).partition(" ")[2] or "-" for m, _ in COLUMNS)])
    return grid(lines) + "\n" + healthy(rows)


def healthy(rows):
    calm = [r for r in rows if not r["label"]]
    alarms, early = sum(r["marks"]["alarm"] for r in calm), sum(r["marks"]["alarm"] for r in rows if r["label"])
    steps = sum(r["healthy_steps"] for r in rows)
    share, count, _ = by_family(calm, "alarm")
    low, high = wilson(share or 0.0, count)
    return (f"healthy programs: {alarms} of {len(calm)} alarmed ({100 * (share or 0):.1f} % by family [{100 * low:.1f}-{100 * high:.1f}]); "
            f"alarms before the fault: {early}; healthy steps seen: {steps}")


def baselines(rows, names):
    """What each simple way says, over the same programs."""
    lines = [["baseline", "programs", "found", "step", "phase+op", "healthy alarmed"]]
    for name in names:
        those = [dict(r, marks=r["baselines"][name]) for r in rows if r.get("baselines")]
        failing, calm = [r for r in those if r["label"]], [r for r in those if not r["label"]]
        lines.append([name, str(len(failing)), *(cell(failing, m, True) for m in ("found", "step", "phase_op")), cell(calm, "alarm", True)])
    return grid(lines)
