"""docs/running.md names every environment variable that runs read, and no other."""

import re
import sys

from attached import PACKAGE, ROOT, AttachTest, main

sys.path.insert(0, str(PACKAGE))
from nanquest import variables  # noqa: E402

NAME = r"NANQUEST(?:_[A-Z0-9]+)*\b"


def named_in_code():
    """By quotes in the package, by getenv in the programs."""
    found = set()
    for file in (PACKAGE / "nanquest").rglob("*.py"):
        found |= set(re.findall(rf"[\"']({NAME})[\"']", file.read_text()))
    for room in ("probe", "replay", "trainer", "viewer"):
        for file in (ROOT / room).rglob("*.cpp"):
            found |= set(re.findall(rf"getenv\(\"({NAME})\"\)", file.read_text()))
    return found - set(variables.BUILDING)


class DocsTest(AttachTest):
    def test_every_variable_is_in_the_table_and_the_other_way_round(self):
        table = set(re.findall(rf"(?m)^\| `({NAME})` \|", (ROOT / "docs" / "running.md").read_text()))
        self.assertEqual(table, set(variables.known()))
        self.assertLessEqual(named_in_code(), table)
        self.assertIn("NANQUEST_SIMD", named_in_code())


if __name__ == "__main__":
    main()
