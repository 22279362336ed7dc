"""However a program comes to torch, `nanquest run` is there when it trains. All of them import transformers first."""

import sys
import unittest
import zipapp

from attached import PROGRAMS, PackagesTest, importable, main, nightly

WAYS = PROGRAMS / "ways.py"
INSIDE = ("import", "lazy_loader", "fork", "spawn")
AT_NIGHT = ("asked_for_twice", "cells", "reloaded", "another_finder", "forkserver", "by_hand", "module_getattr", "failed_first", "in_a_thread")


class WaysTest(PackagesTest):
    def assert_observed(self, *command, **more):
        process = self.nanquest("run", "--run-dir", "run", "--level", "watch", "--", *command, **more)
        self.assert_exit(process)
        self.assertEqual([p.name for p in self.incidents()], ["step-00000002.r0.h5"], process.stderr)
        self.assertRegex(process.stderr, r"nanquest: 1 incident in 4 steps \(1 later step only propagated these values\); .*files in run")

    def test_command(self):
        self.assert_observed(sys.executable, "-c", f"import sys; sys.path.append({str(PROGRAMS)!r}); import ways; ways.main()")

    def test_module(self):
        (self.scratch / "package").mkdir()
        (self.scratch / "package" / "__main__.py").write_text(WAYS.read_text())
        self.assert_observed(sys.executable, "-m", "package")

    def test_zipped_program(self):
        (self.scratch / "source").mkdir()
        (self.scratch / "source" / "__main__.py").write_text(WAYS.read_text())
        zipapp.create_archive(self.scratch / "source", self.scratch / "app.pyz", interpreter=sys.executable)
        self.assert_observed(sys.executable, "app.pyz")
        self.clear("run")
        self.assert_observed("./app.pyz")

    def test_console_script(self):
        script = self.scratch / "train-it"
        script.write_text(f"#!{sys.executable}\nimport sys\nsys.path.append({str(PROGRAMS)!r})\n"
                          "from ways import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
        script.chmod(0o755)
        self.assert_observed("./train-it")

    @nightly
    def test_standard_input(self):
        self.assert_observed("sh", "-c", f"{sys.executable} - < {WAYS}")

    @unittest.skipUnless(importable("ipykernel") and importable("nbclient"), "ipykernel and nbclient are not installed")
    def test_notebook(self):
        import json
        cells = ["import transformers", f"import sys; sys.path.append({str(PROGRAMS)!r})\nimport ways", "ways.train()"]
        (self.scratch / "book.ipynb").write_text(json.dumps({
            "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
                {"cell_type": "code", "id": str(n), "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
                for n, cell in enumerate(cells)]}))
        (self.scratch / "kernels" / "kernels" / "here").mkdir(parents=True)
        (self.scratch / "kernels" / "kernels" / "here" / "kernel.json").write_text(json.dumps({
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "here",
            "language": "python"}))
        self.assert_observed(sys.executable, "-c", "import nbformat, nbclient; nbclient.NotebookClient("
                             "nbformat.read('book.ipynb', 4), kernel_name='here').execute()",
                             JUPYTER_PATH=str(self.scratch / "kernels"))


def way_test(way):
    def test(self):
        self.assert_observed(sys.executable, WAYS, way)
    return test


for _way in INSIDE + AT_NIGHT:
    setattr(WaysTest, f"test_{_way}", way_test(_way) if _way in INSIDE else nightly(way_test(_way)))


if __name__ == "__main__":
    main()
