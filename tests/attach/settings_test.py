"""The table of settings (nanquest/base/settings_table.py), and what is made of it: options, variables, arguments of attach(), the
library's options, the table of docs/running.md. And a second attach()."""

import contextlib
import io
import inspect
import json
import os
import re
import sys

from attached import LIBRARY, PACKAGE, ROOT, AttachTest, main

sys.path.insert(0, str(PACKAGE))
import nanquest  # noqa: E402
from nanquest import cli  # noqa: E402
from nanquest.base.settings import Settings  # noqa: E402
from nanquest.base.settings_table import SETTINGS  # noqa: E402

OTHER = {"lr_backoff": "0.25", "record_steps": "0,7", "max_disk": "20G", "run_dir": "elsewhere"}  # else the next word, 1, or a file here


class SettingsTest(AttachTest):
    def other(self, setting):
        """A value that is not the default, as text."""
        if setting.name in OTHER:
            return OTHER[setting.name]
        if setting.kind.values:
            return next(value for value in setting.kind.values if value != setting.default)
        if setting.kind.is_path:
            return str(self.scratch if setting.kind.metavar == "DIR" else self.scratch / "file")
        return "7"

    def test_from_the_command_line_through_the_environment_to_the_program(self):
        words = [word for setting in SETTINGS if setting.option and setting.name != "level" for word in (setting.flag, self.other(setting))]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            self.assertEqual(cli.main(["env", *words]), 0)
        environment = dict(re.findall(r"(?m)^export (\w+)='?(.*?)'?$", shown.getvalue()))
        environment |= {setting.variable: self.other(setting) for setting in SETTINGS if not setting.option}
        settings = Settings.from_environment(environment)
        for setting in SETTINGS:
            with self.subTest(setting=setting.name):
                value, wanted = getattr(settings, setting.name), self.other(setting)
                if setting.name != "level":
                    self.assertNotEqual(value, setting.default)
                    self.assertEqual(setting.kind.text(value), os.path.abspath(wanted) if setting.kind.is_path else wanted)

    def test_what_can_not_be(self):
        for setting in SETTINGS:
            for text in {"kind": ("often", "-1", "1.5"), "values": ("neither",)}["values" if setting.kind.values else "kind"]:
                if setting.kind.is_path or (setting.name, text) == ("max_disk", "1.5"):
                    continue
                with self.subTest(setting=setting.name, text=text):
                    with self.assertRaisesRegex(ValueError, f"^{setting.variable} is '{text}', but must be "):
                        Settings.from_environment({setting.variable: text})
                    with self.assertRaisesRegex(ValueError, f"^{setting.name} is '{text}', but must be "):
                        Settings(**{setting.name: text}).check()

    def test_arguments_of_attach(self):
        names = [*inspect.signature(nanquest.attach).parameters]
        self.assertEqual(names, [*dict.fromkeys(["run_dir", "level", *(setting.name for setting in SETTINGS), "config"])])
        for setting in SETTINGS:
            self.assertIn(f"{setting.name}: ", nanquest.attach.__doc__)
        with self.assertRaisesRegex(TypeError, "has no setting 'watch_evry'"):
            nanquest.attach(watch_evry=3)
        with self.assertRaisesRegex(ValueError, "keep_steps is -1, but must be a whole number of at least 0"):
            nanquest.attach(keep_steps=-1)

    def test_the_library_knows_what_the_table_says_it_does(self):
        import torch
        torch.ops.load_library(LIBRARY)
        whole = json.loads(Settings().to_json(str(self.scratch / "run"), 0, 1))
        for setting in SETTINGS:
            self.assertEqual(setting.name in whole, setting.library or setting.name in ("run_dir", "on_incident"), setting.name)
        for name in whole:
            fewer = {key: value for key, value in whole.items() if key != name}
            self.assertIn(f"option {name} is missing", torch.ops.nanquest.start(json.dumps(fewer)))
            self.assertIn(f"option {name} is ", torch.ops.nanquest.start(json.dumps({**whole, name: {"of": ["no", "kind"]}} if name != "config" else {**whole, name: 3})))
        self.assertIn("option more is unknown", torch.ops.nanquest.start(json.dumps({**whole, "more": 1})))

    def test_what_the_session_in_cpp_has_too_has_the_same_default(self):
        fields = dict(re.findall(r"(?m)^  int (\w+) = (\d+);", (ROOT / "probe" / "nanquest.h").read_text()))
        both = [setting for setting in SETTINGS if setting.name in fields]
        self.assertIn("max_incidents", [setting.name for setting in both])
        for setting in both:
            self.assertEqual(str(setting.default), fields[setting.name], setting.name)

    def test_the_table_of_the_documentation(self):
        """A row that differs is printed as it should be."""
        page = (ROOT / "docs" / "running.md").read_text()
        for setting in SETTINGS:
            how = f"`{setting.flag}`" if setting.option else "no option"
            self.assertIn(f"| `{setting.variable}` | {how}: {setting.help} (default: {setting.default_text}) |\n", page)

    def ran(self, *calls, options=None):
        """What a program prints, and says, that attaches so; then trains."""
        program = self.scratch / "train.py"
        program.write_text("import torch, nanquest\n" + "".join(f"try:\n    print(nanquest.attach({call}))\nexcept ValueError as error:\n"
                           "    print(error)\n" for call in calls) +
                           "model = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1e-2)\n"
                           "model(torch.ones(2, 4)).sum().backward()\noptimizer.step()\n")
        done = self.plain(program) if options is None else self.nanquest("run", *options, "--", sys.executable, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr

    def test_a_second_attach(self):
        said, line = self.ran("run_dir='first'", "", "'./first'", "run_dir='first', level='trace'",
                              "run_dir='second', on_incident='skip', level='watch'", "config={'a': 1}")
        self.assertEqual((said[:4], line), (["True"] * 4, ""))
        self.assertEqual(said[4], "nanquest is attached with other settings: run_dir is 'first', not 'second'; level is 'trace', not "
                                  "'watch'; on_incident is 'continue', not 'skip'; call nanquest.detach() first, or leave them out")
        self.assertIn("config is {'a': None}, not {'a': 1}", said[5])

    def test_attach_under_nanquest_run(self):
        said, line = self.ran("run_dir='second', level='trace'", options=["--run-dir", "first"])
        self.assertEqual(said, ["True"])
        self.assertRegex(line, r"(?m)^nanquest: the settings of nanquest run stay, whatever nanquest\.attach\(\) asks for: "
                               r"run_dir is '.*/first', not 'second'$")
        self.assertFalse((self.scratch / "second").exists())


if __name__ == "__main__":
    main()
