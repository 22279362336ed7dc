"""`nanquest explain RUN` and `nanquest skill`: the newest incident as people and programs read it, from a verdict that is there or is made."""

import json
import os
import pathlib

from attached import BIN, PROGRAMS, AttachTest, main

FIELDS = ["format", "version", "run", "incidents", "incident", "without_file", "verdict", "problem", "commands", "findings"]


class ExplainRunTest(AttachTest):
    def explain(self, *arguments, code, **more):
        process = self.nanquest("explain", *arguments, **{"NANQUEST_BIN": str(BIN), **more})
        self.assert_exit(process, code)
        return process

    def test_a_run_without_incidents_and_one_that_is_not_there(self):
        os.mkdir(self.scratch / "empty")
        self.assertIn("no incident in ", self.explain("empty", code=0).stdout)
        document = json.loads(self.explain("empty", "--json", code=0).stdout)
        self.assertEqual((list(document), document["incident"], document["incidents"]), (FIELDS, None, 0))
        self.assertRegex(self.explain("nowhere", code=2).stderr, "^nanquest: nowhere is not there; [^\n]*\n$")

    def test_incidents_without_a_file_are_told(self):
        self.assert_exit(self.observed(PROGRAMS / "mlp.py", "sgd", "4", "nan", options=("--level", "guard")))
        document = json.loads(self.explain("run", "--json", code=1).stdout)
        self.assertEqual((document["incident"], document["incidents"], document["commands"]), (None, 1, []))
        self.assertIn("level guard keeps no trace", document["problem"])
        lines = self.explain("run", code=1).stdout.splitlines()
        self.assertEqual(lines[0], "1 incident without a file")
        self.assertRegex(lines[1], "^step 4: .*run it again with --level trace")

    def test_the_newest_incident_is_explained_and_its_verdict_read_afterwards(self):
        self.assert_exit(self.observed(PROGRAMS / "mlp.py", "sgd", "4", "nan"))
        document = json.loads(self.explain("run", "--json", code=1).stdout)
        self.assertEqual(list(document), FIELDS)
        self.assertEqual((document["verdict"]["cause"], document["verdict"]["step"]), ("BAD_DATA", 4))
        self.assertTrue(all(each["command"].startswith("nanquest ") and document["incident"] in each["command"] for each in document["commands"]))
        # Now the verdict lies beside the file, and nothing has to be started.
        without = {"NANQUEST_BIN": "/nowhere", "PATH": "/nowhere"}
        self.assertEqual(json.loads(self.explain("run", "--json", code=1, **without).stdout)["verdict"], document["verdict"])
        lines = self.explain("run", code=1, **without).stdout.splitlines()
        self.assertRegex(lines[0], r"^step 4: BAD_DATA: \S+ in \S+ \(input, \d+ %\)$")
        self.assertRegex(lines[1], r"^where: .*\.py:\d+ ")
        self.assertRegex(lines[2], "^why: ")
        os.remove(self.scratch / pathlib.Path(document["incident"]).with_suffix(".json"))
        none = json.loads(self.explain("run", "--json", code=1, **without).stdout)
        self.assertIsNone(none["verdict"])
        self.assertIn("nanquest-replay is not there", none["problem"])

    def test_the_page_for_agents_is_short_and_true_of_the_commands(self):
        page = self.nanquest("skill").stdout
        self.assertLessEqual(len(page.splitlines()), 80)
        listed = self.nanquest("--help").stdout
        for verb in ("run", "explain", "replay", "doctor", "rehearse", "skill"):
            self.assertIn(f"nanquest {verb}", page)
            self.assertIn(verb, listed)


if __name__ == "__main__":
    main()
