"""What `nanquest-replay redact` and `minimal` make of files that attached programs left, looked into with h5py."""

import subprocess

from attached import BIN, PROGRAMS, AttachTest, main

VALUES = ("parameters/", "buffers/", "optimizer/", "batch/", "twin/", "trace/slot_data/", "trace/host_writes/")
MARKS = (b"Planted", b"planted", b"pixels", b"shared.py")  # of the program: types, modules, arguments, its file


def tensors(file):
    """Every stored tensor's type and bytes, by path."""
    import h5py
    found = {}

    def visit(name, thing):
        if isinstance(thing, h5py.Dataset) and thing.attrs.get("kind") in (b"tensor", "tensor"):
            found[name] = (str(thing.dtype), thing[()].tobytes())

    with h5py.File(file) as snapshot:
        snapshot.visititems(visit)
    return found


class ShareTest(AttachTest):
    def incident(self, level):
        self.clear("run")
        self.assert_exit(self.observed(PROGRAMS / "shared.py", options=("--level", level, "--watch-every", "0")))
        found = self.incidents()
        self.assertEqual([p.name for p in found[:1]], ["step-00000006.r0.h5"])
        return found[0]

    def test_files_of_both_levels(self):
        for level, ways in (("trace", ("--scramble", "--drop")), ("watch", ("--scramble",))):
            original = self.incident(level)
            for how in ways:
                with self.subTest(level=level, how=how):
                    self.nothing_of_values_and_names_is_left(original, how)
            with self.subTest(level=level, how="minimal"):
                self.the_smallest_says_the_same(original)
        self.a_full_disk_leaves_nothing(original)

    def nothing_of_values_and_names_is_left(self, original, how):
        whole, shared = original.read_bytes(), self.scratch / "shared.h5"
        shared.unlink(missing_ok=True)
        said = self.replay("redact", original, "-o", shared, how, "--samples", "--weights", "--names", "--settings")
        self.assertTrue(original.read_bytes() == whole, "the original is as it was")
        private = {p: v for p, v in tensors(original).items() if p.startswith(VALUES)}
        self.assertGreater(len(private), 8, sorted(private))
        after, bytes_now = set(tensors(shared).values()), shared.read_bytes()
        for mark in MARKS:
            self.assertTrue(mark in whole, mark)
            self.assertFalse(mark in bytes_now, mark)
        for path, (kind, content) in private.items():
            if len(content) > 8:
                self.assertFalse((kind, content) in after, f"{path} equals a tensor of the new file")
            # The first two numbers of the original, wherever they may have gone. (Zeros stay, and are everywhere.)
            size = 16 if kind == "int64" else 8
            if len(content) >= size and content[:size].count(0) < size - 3:
                self.assertFalse(content[:size] in bytes_now, path)
        self.assertTrue(said["verdict_before"].startswith("BAD_DATA"), said)
        # A value that is not finite stays where it is; where values were dropped, only the record of it does.
        self.assertEqual(said["same_verdict"], how == "--scramble", said)
        self.assertEqual(self.replay("info", shared)["shared"]["verdict_before"], said["verdict_before"])

    def the_smallest_says_the_same(self, original):
        small = self.scratch / "small.h5"
        small.unlink(missing_ok=True)
        said = self.replay("minimal", original, "-o", small)
        self.assertLess(said["bytes"], said["bytes_before"] / 2, said)
        before, now = self.replay("diagnose", original), self.replay("diagnose", small)
        for field in ("cause", "origin", "phase", "precision"):
            self.assertEqual(before[field], now[field], field)
        for field in ("op", "module", "tensor", "value", "count", "first"):
            self.assertEqual(before["culprit"].get(field), now["culprit"].get(field), field)
        self.assertTrue(now["fix"]["verified"])
        self.assert_bit_exact(small)

    def a_full_disk_leaves_nothing(self, original):
        folder = self.scratch / "full"
        folder.mkdir()
        process = subprocess.run(f"ulimit -f 8; trap '' XFSZ; exec '{BIN}/nanquest-replay' redact -q --no-check "
                                 f"'{original}' -o '{folder}/shared.h5'", shell=True, executable="/bin/bash", text=True,
                                 capture_output=True, timeout=100)
        self.assertEqual(process.returncode, 3, process.stderr)
        self.assertIn("shared.h5", process.stderr)
        self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    main()
