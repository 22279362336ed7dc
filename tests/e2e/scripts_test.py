"""samples/demo.sh, tests/run.sh and cmake/setup.sh refuse what they can't do, in one line, before doing anything."""

import os
import subprocess

import common


class Scripts(common.ProgramTest):
    def script(self, name, *arguments, **environment):
        return subprocess.run([str(common.ROOT / name), *map(str, arguments)], cwd=self.scratch, capture_output=True,
                              text=True, timeout=60, env=dict(os.environ, **environment))

    def test_help(self):
        for name in ("samples/demo.sh", "tests/run.sh"):
            process = self.script(name, "--help")
            self.assert_exit(process, common.OK)
            self.assertIn(name, process.stdout)
            self.assertIn("--help", process.stdout)

    def test_unknown_option(self):
        for name in ("samples/demo.sh", "tests/run.sh"):
            self.assert_refused(self.script(name, "--frobnicate"), common.USAGE, "--frobnicate", "--help")

    def test_missing_data_and_config(self):
        self.assert_refused(self.script("samples/demo.sh", "--data", "/nowhere/at/all"), common.USAGE, "/nowhere/at/all")
        self.assert_refused(self.script("samples/demo.sh", "--config", "no.toml"), common.USAGE, "no.toml")

    def test_programs_not_built(self):
        process = self.script("samples/demo.sh", "--bin", self.scratch, "--run-dir", self.scratch / "run",
                              "--config", common.ROOT / "LICENSE")
        self.assert_refused(process, 70, "nanquest-trainer was not built")
        self.assertFalse((self.scratch / "run").exists())

    def test_unknown_system_gets_the_list(self):
        release = self.scratch / "os-release"
        release.write_text("ID=plan9\nVERSION_ID=4\n")
        cache = self.scratch / "cache"
        process = self.script("cmake/setup.sh", NANQUEST_OS_RELEASE=str(release), NANQUEST_CACHE=str(cache))
        self.assert_exit(process, common.USAGE)
        packages = [line.split("#")[0].strip() for line in (common.ROOT / "cmake/packages-apt.txt").read_text().splitlines()]
        for package in filter(None, packages):
            self.assertIn(package, process.stderr)
        self.assertIn("NANQUEST_SKIP_PACKAGES=1", process.stderr)
        self.assertFalse(cache.exists())

    def test_cache_that_cannot_be_made(self):
        file = self.scratch / "file"
        file.write_text("")
        process = self.script("cmake/setup.sh", NANQUEST_SKIP_PACKAGES="1", NANQUEST_CACHE=str(file / "cache"))
        self.assert_exit(process, 70)
        self.assertIn("NANQUEST_CACHE", process.stderr)

    def test_interrupted_download_leaves_nothing(self):
        """A pip that fails: the part is gone, nothing is marked complete, the error names the part."""
        tools = self.scratch / "bin"
        tools.mkdir()
        fake = tools / "python3"
        fake.write_text("#!/bin/sh\ncase \"$*\" in *pip*) exit 1;; esac\nexec /usr/bin/python3 \"$@\"\n")
        fake.chmod(0o755)
        cache = self.scratch / "cache"
        process = self.script("cmake/setup.sh", NANQUEST_SKIP_PACKAGES="1", NANQUEST_CACHE=str(cache),
                              PIP_INDEX_URL="file:///nowhere", PIP_NO_INDEX="1", PIP_FIND_LINKS="",
                              PATH=f"{tools}:/usr/bin:/bin")
        self.assert_exit(process, 70)
        self.assertIn("failed", process.stderr)
        self.assertEqual([path.name for path in cache.rglob(".complete")], [])
        self.assertEqual([path.name for path in cache.iterdir() if path.is_dir()], [])


if __name__ == "__main__":
    common.main()
