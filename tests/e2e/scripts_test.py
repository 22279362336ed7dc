"""samples/demo.sh, tests/run.sh and cmake/setup.sh refuse what they can't do, in one line, before doing anything."""

import hashlib
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

    def test_tools_of_our_own_do_not_hide_the_active_python(self):
        """The system's CMake is too old: ours comes first in PATH, the environment it lives in does not, because the
        active Python may be the one with torch."""
        tools, cache = self.scratch / "bin", self.scratch / "cache"
        tools.mkdir()
        sources = [line.split("#")[0].strip() for line in (common.ROOT / "cmake/sources.txt").read_text().splitlines()]
        key = hashlib.sha256("".join(line + "\n" for line in sources if line).encode()).hexdigest()[:12]
        (cache / f"imgui-{key}").mkdir(parents=True)
        (cache / f"imgui-{key}" / ".complete").touch()
        new = "#!/bin/sh\\necho cmake version 3.31.10\\n"  # for printf
        stub = f"""#!/bin/sh
# A Python that has torch, makes environments with a python of this kind, and installs CMake by writing it.
here="$(dirname "$0")"
case "$*" in
  -) cat >/dev/null; echo "2.15.0 all" ;;
  *"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/python3" ;;
  *pip*install*) for tool in cmake ctest ninja; do printf '{new}' >"$here/$tool"; chmod +x "$here/$tool"; done ;;
  *sys.executable*) echo "$0" ;;
  *find_spec*) echo /nowhere/torch ;;
  *) exec /usr/bin/python3 "$@" ;;
esac
"""
        old = "#!/bin/sh\necho cmake version 3.22.1\n"
        for name, text in (("python3", stub), ("cmake", old)):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        process = subprocess.run(["bash", "-c", f". {common.ROOT}/cmake/setup.sh; command -v cmake ctest ninja python3"],
                                 cwd=self.scratch, capture_output=True, text=True, timeout=60,
                                 env=dict(os.environ, NANQUEST_SKIP_PACKAGES="1", NANQUEST_CACHE=str(cache),
                                          PATH=f"{tools}:/usr/bin:/bin"))
        self.assert_exit(process, common.OK)
        found = process.stdout.split()
        for path, name in zip(found[:3], ("cmake", "ctest", "ninja")):
            self.assertRegex(path, f"^{cache}/toolbox-[0-9a-f]+/tools/{name}$")
        self.assertEqual(found[3], str(tools / "python3"))
        self.assertIn("torch 2.15.0 of the active Python", process.stderr)

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
