"""Tables of docs/evidence.md that a run writes."""

from attached import ROOT

EVIDENCE, END = ROOT / "docs" / "evidence.md", "<!-- end of coverage -->"


def put(begin, lines):
    """Writes lines between a marker, which stands there once, and the next END; SystemExit if they are not there."""
    text = EVIDENCE.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(END)
    if not found or not ended or begin in rest:
        raise SystemExit(f"{EVIDENCE} has no place for the table: a line '{begin}' and after it '{END}'")
    EVIDENCE.write_text(before + "\n".join([begin, *lines, END]) + after, encoding="utf-8")
