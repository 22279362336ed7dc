"""--max-disk: a run's files of steps stay under it, the first incident and the newest remain, each removal is in the manifest."""

import json

from attached import PROGRAMS, AttachTest, main

MANY = PROGRAMS / "many.py"


class MaxDiskTest(AttachTest):
    def of_run(self, size, bad="2,15,16,30", run_dir="run", options=()):
        process = self.observed(MANY, bad, f"{run_dir}.pt", run_dir=run_dir, options=("--level", "watch", *options,
                                                                                   *(("--max-disk", size) if size else ())))
        self.assert_exit(process)
        files = [file for folder in ("incidents", "recordings") for file in sorted((self.scratch / run_dir / folder).glob("*"))]
        manifest = json.loads((self.scratch / run_dir / "manifest.json").read_text())
        return process, files, manifest

    def test_what_goes_and_what_stays(self):
        import h5py
        import torch

        _, all_of_them, manifest = self.of_run("", run_dir="all")
        self.assertEqual([int(file.name[5:13]) for file in all_of_them], [2, 15, 16, 30])
        self.assertEqual(manifest["removed"], [])
        each = max(file.stat().st_size for file in all_of_them)
        for room, stay, gone in ((3.7, [2, 15, 30], [16]), (2.7, [2, 30], [15, 16])):
            with self.subTest(room):
                run_dir = f"run-{room}"
                process, files, manifest = self.of_run(str(int(room * each)), run_dir=run_dir)
                self.assertEqual([int(file.name[5:13]) for file in files], stay, process.stderr)
                self.assertEqual(sorted(int(each["file"][15:23]) for each in manifest["removed"]), gone)
                for removed in manifest["removed"]:
                    self.assertGreater(removed["bytes"], 0)
                    self.assertIn("max_disk", removed["why"])
                self.assertLessEqual(sum(file.stat().st_size for file in files), room * each)
                for file in files:
                    with h5py.File(file) as snapshot:
                        self.assertTrue(snapshot.attrs["complete"])
                    self.assert_bit_exact(file)
                unbounded, bounded = (torch.load(self.scratch / f"{name}.pt") for name in ("all", run_dir))
                for name, value in unbounded.items():
                    self.assertEqual(value.numpy().tobytes(), bounded[name].numpy().tobytes(), name)

    def test_recordings_count(self):
        _, files, _ = self.of_run("", options=("--record-steps", "1,5"))
        each = max(file.stat().st_size for file in files)
        _, files, manifest = self.of_run(str(int(2.7 * each)), bad="2,30", run_dir="less", options=("--record-steps", "1,5"))
        self.assertEqual([int(file.name[5:13]) for file in files], [2, 30])
        self.assertEqual([each["file"][:10] for each in manifest["removed"]], ["recordings"] * 2)

    def test_too_small_for_any(self):
        process, files, manifest = self.of_run("1K")
        self.assertEqual(files, [])
        self.assertIn("of the 1 kB that max_disk allows (give a larger --max-disk)", process.stderr)
        self.assertEqual(len(manifest["incidents"]), 4)

    def test_a_size_that_is_none(self):
        process = self.nanquest("run", "--max-disk", "much", "--", "true")
        self.assert_exit(process, 2)
        self.assertIn("'much': must be a size like 20G", process.stderr)


if __name__ == "__main__":
    main()
