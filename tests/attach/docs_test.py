"""The pages: every environment variable is in docs/running.md, every link leads somewhere, the first page stays short."""

import re
import sys

from attached import PACKAGE, ROOT, AttachTest, main

sys.path.insert(0, str(PACKAGE))
from nanquest.base import environment  # noqa: E402

NAME = r"NANQUEST(?:_[A-Z0-9]+)*\b"


def named_in_code():
    """By quotes in the package, by getenv in the programs."""
    found = set()
    for file in (PACKAGE / "nanquest").rglob("*.py"):
        found |= set(re.findall(rf"[\"']({NAME})[\"']", file.read_text()))
    for room in ("probe", "replay", "trainer", "viewer"):
        for file in (ROOT / room).rglob("*.cpp"):
            found |= set(re.findall(rf"getenv\(\"({NAME})\"\)", file.read_text()))
    return found - set(environment.BUILDING)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def prose_of(page):
    """A page without its fenced blocks, in which brackets and # are code."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


def anchors_of(page):
    """The anchors that a renderer makes of the headings: lower case, dashes for blanks, no other punctuation."""
    headings = re.findall(r"(?m)^#{1,6} (.+)$", prose_of(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            broken.append(f"{page.relative_to(ROOT)}: {target}")
    return broken


class DocsTest(AttachTest):
    def test_every_link_leads_somewhere(self):
        self.assertEqual([link for page in PAGES for link in broken_links(page)], [])

    def test_the_first_page_is_short_and_leads_to_every_other(self):
        first = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertLessEqual(len(first.splitlines()), 250)
        self.assertLessEqual(len(first.encode()), 14_000)
        self.assertEqual([page.name for page in PAGES[1:] if f"(docs/{page.name}" not in first], [])
        self.assertLessEqual(first.splitlines().index("nanquest run -- python samples/attach/huggingface.py"), 40)

    def test_every_variable_is_in_the_table_and_the_other_way_round(self):
        table = set(re.findall(rf"(?m)^\| `({NAME})` \|", (ROOT / "docs" / "running.md").read_text()))
        self.assertEqual(table, set(environment.known()))
        self.assertLessEqual(named_in_code(), table)
        self.assertIn("NANQUEST_SIMD", named_in_code())


if __name__ == "__main__":
    main()
