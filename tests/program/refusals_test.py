"""Programs that the probe can't observe: one line says why, and they run unchanged, as does everything without LibTorch."""

import os
import shutil
import struct
import unittest

from program import PROGRAMS, ProgramTest, main


class Refused(ProgramTest):
    def assert_ran(self, seen, line, code=5):
        self.assert_exit(seen, code)
        self.assertEqual(seen.stdout, "it ran\n")
        lines = self.probes_lines(seen)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(line, lines[0])
        self.assertEqual(self.programs_lines(seen), [])
        self.assertFalse((self.scratch / "run").exists())

    def test_another_version(self):
        self.assert_ran(self.seen(PROGRAMS / "with_fake_torch", 5), "but this program has 1.2.3; the program runs without the probe")

    def test_an_old_version(self):
        self.assert_ran(self.seen(PROGRAMS / "with_old_torch", 5), "but this program has one from before 2.9")

    def test_linked_statically(self):
        for name in ("static_torch", "holds_torch"):
            with self.subTest(name):
                self.assert_ran(self.seen(PROGRAMS / name, 5), f"{name} has LibTorch inside (linked statically)")

    def test_loaded_later(self):
        for torch in ("fake", "old"):
            with self.subTest(torch):
                library = PROGRAMS / torch / "libtorch_cpu.so"
                self.assert_ran(self.seen(PROGRAMS / "plain", 5, library), f"set LD_PRELOAD={library} before nanquest run")

    @unittest.skipUnless(os.getuid() == 0, "only root can give a file to somebody else")
    def test_rights_of_another(self):
        copy = self.scratch / "with_rights"
        shutil.copy(PROGRAMS / "with_fake_torch", copy)
        os.chown(copy, 65534, -1)
        os.chmod(copy, 0o4755)
        self.assert_ran(self.seen(copy, 5, LD_LIBRARY_PATH=""), "runs with the rights of another")

    def test_32_bits(self):
        # Such a program does not run everywhere, so the message is tested directly.
        from nanquest.start import native
        path = self.scratch / "small"
        path.write_bytes(struct.pack("<4sBB", b"\x7fELF", 1, 1) + bytes(100) + native.INSIDE)
        path.chmod(0o755)
        self.assertEqual(native.look([str(path)]).refused, "small has 32 bits, and the probe 64: it runs without the probe")


class Others(ProgramTest):
    def test_no_torch(self):
        for code in (0, 7):
            seen = self.seen(PROGRAMS / "plain", code)
            self.assert_exit(seen, code)
            self.assertEqual(seen.stdout, "it ran\n")
            self.assertEqual(len(self.probes_lines(seen)), 1, seen.stderr)
            self.assertTrue(seen.stderr.endswith("and no program linked with LibTorch was started\n"), seen.stderr)
        self.assertFalse((self.scratch / "run").exists())

    def test_switched_off(self):
        seen = self.seen("sh", "-c", f"NANQUEST=off {PROGRAMS / 'with_fake_torch'} 5")
        self.assert_exit(seen, 5)
        self.assertNotIn("built for", seen.stderr)

    def test_python_is_started_as_before(self):
        seen = self.nanquest("run", "--", "python3", "-c", "import os; print(os.environ.get('LD_PRELOAD'))")
        self.assertEqual(seen.stdout, "None\n")

    def test_own_preloads_stay(self):
        seen = self.nanquest("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=str(PROGRAMS / "old" / "libtorch_cpu.so"))
        self.assertTrue(seen.stdout.startswith(f"{PROGRAMS / 'old' / 'libtorch_cpu.so'}:"), seen.stdout)
        self.assertIn("libnanquest_preload.so", seen.stdout)


if __name__ == "__main__":
    import sys
    from program import attached
    sys.path.insert(0, str(attached.PACKAGE))
    main()
