"""`nanquest doctor` tells what would be seen here: it tries it, and what it says in ruins names the ruin and the way out."""

import json
import shutil
import subprocess
import sys

from attached import BIN, LIBRARY, PACKAGE, PROGRAMS, AttachTest, main


class DoctorTest(AttachTest):
    def findings(self, *arguments, code=0, **more):
        """name -> its findings."""
        process = self.nanquest("doctor", "--json", *arguments, **more)
        self.assert_exit(process, code)
        page = json.loads(process.stdout)
        self.assertEqual(page["observes"], code == 0)
        found = {}
        for each in page["findings"]:
            self.assertTrue(each["way_out"] or each["state"] == "ok", each)
            found.setdefault(each["name"], []).append(each)
        return found

    def with_library(self, name):
        """A copy of what lies beside the library, for a test to spoil."""
        folder = self.scratch / name
        folder.mkdir()
        for file in (LIBRARY, LIBRARY.with_suffix(".version")):
            shutil.copy(file, folder)
        return folder / LIBRARY.name

    def test_all_is_well(self):
        found = self.findings(NANQUEST_BIN=str(BIN))
        self.assertEqual([name for name in found if name.startswith("level ")], ["level guard", "level trace", "level watch"])
        self.assertIn("a test program of 2 steps was observed", found["attached"][0]["text"])
        self.assertIn("replayed bit for bit", found["recorded"][0]["text"])
        self.assertRegex(found["HDF5"][0]["text"], r"^1\.\d+\.\d+")
        self.assertIn("not known before the first", found["snapshot"][0]["text"])
        for name in ("python", "torch", "probe", "devices", "hook", "disk", "memory", "cores", "nanquest-replay", "launchers"):
            self.assertIn(name, found)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_how_each_device_is_measured_and_why(self):
        sys.path.insert(0, str(PACKAGE))
        from nanquest.commands import doctor
        for kind, kernels, state, words in (("cuda", 3, "ok", "values are measured by a kernel of nanquest, gradients by a kernel of nanquest"),
                                            ("cuda", 1, "ok", "values are measured by a kernel of nanquest, gradients by PyTorch norms"),
                                            ("cuda", 0, "warning", "PyTorch operators, each copied to the host (slow), gradients by PyTorch norms: libnanquest_cuda.so: no such file"),
                                            ("xpu", 2, "warning", "gradients by a kernel of nanquest: nanquest has no kernel for this kind")):
            (found,) = doctor._back_ends({"kernels": [[kind, kernels]], "no_cuda_kernels": "libnanquest_cuda.so: no such file"})
            self.assertEqual((found.name, found.state), ("back end", state))
            self.assertIn(words, found.text)
            self.assertEqual(bool(found.way_out), state != "ok")
        self.assertEqual(doctor._back_ends({}), [])

    def test_as_people_read_it_in_a_run_directory(self):
        self.assert_exit(self.observed(PROGRAMS / "mlp.py", "sgd", 4, "nan"))
        process = self.nanquest("doctor", "--run-dir", "run", NANQUEST_LEVLE="watch", NANQUEST_BIN="/nowhere", PATH="/usr/bin:/bin")
        self.assert_exit(process)
        self.assertIn("the 1 there take", process.stdout)
        self.assertRegex(process.stdout, r"(?m)^warning +variables +NANQUEST_LEVLE is not known\n +-> did you mean NANQUEST_LEVEL\?")
        self.assertRegex(process.stdout, r"(?m)^warning +nanquest-replay +not there")
        self.assertTrue(process.stdout.endswith("programs that nanquest run starts here are observed\n"), process.stdout)

    def test_nothing_can_be_observed(self):
        other = self.with_library("other")
        other.with_suffix(".version").write_text("2.99.0\n")
        torn = self.with_library("torn")
        torn.write_text("no library")
        (self.scratch / "file").write_text("")
        for name, words, arguments, more in (
                ("probe", "is missing", (), {"NANQUEST_ATTACH_LIBRARY": "/nowhere/lib.so"}),
                ("probe", "built for PyTorch 2.99.0", (), {"NANQUEST_ATTACH_LIBRARY": str(other)}),
                ("attached", "can't be loaded", (), {"NANQUEST_ATTACH_LIBRARY": str(torn)}),
                ("switched off", "NANQUEST=off is set", (), {"NANQUEST": "off"}),
                ("disk", "is not a directory", ("--run-dir", "file"), {})):
            with self.subTest(words):
                found = self.findings(*arguments, code=2, **more)
                self.assertEqual(found[name][-1]["state"], "problem")
                self.assertIn(words, found[name][-1]["text"])

    def test_what_the_environment_says_that_can_not_be(self):
        theirs = self.scratch / "theirs"
        theirs.mkdir()
        (theirs / "sitecustomize.py").write_text("theirs = True\n")
        environment = self.environment()["PYTHONPATH"]
        found = self.findings(NANQUEST_WATCH_EVERY="often", NANQUEST="of", PYTHONPATH=f"{theirs}:{environment}")
        self.assertIn("NANQUEST_WATCH_EVERY is 'often', but must be a whole number", found["variables"][0]["text"])
        self.assertIn("NANQUEST=of has no effect", found["variables"][1]["text"])
        self.assertIn(f"{theirs}/sitecustomize.py runs after it", found["hook"][0]["text"])

    def test_without_torch(self):
        bare = getattr(sys, "_base_executable", sys.executable)
        if subprocess.run([bare, "-c", "import torch"], capture_output=True).returncode == 0:
            self.skipTest("every Python here has torch")
        process = subprocess.run([bare, "-m", "nanquest", "doctor"], cwd=self.scratch, text=True, capture_output=True,
                                 timeout=100, env=self.environment())
        self.assert_exit(process, 2)
        self.assertRegex(process.stdout, r"(?m)^problem +torch +not installed in this Python\n.*pip install torch")
        self.assertTrue(process.stdout.endswith("programs would not be observed here\n"), process.stdout)


if __name__ == "__main__":
    main()
