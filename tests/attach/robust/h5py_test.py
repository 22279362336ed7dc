"""Two HDF5 libraries in one process, both at work: the program's files and the probe's are whole."""

from robust import RobustTest, by_day, main


class H5pyTest(RobustTest):
    def test_both_write(self):
        import h5py

        for order in by_day(("before",), ("after",)):
            with self.subTest(order):
                self.clear("run")
                # From step 4 on every step is bad: one incident, whose damage the others carry on.
                asked = (0, 1, 2, 3, 6, 7, 8)
                self.assert_same("own_files", order, options=("--record-steps", ",".join(map(str, asked))))
                with h5py.File(self.scratch / "mine.h5") as file:
                    self.assertEqual(list(file["steps"][:]), list(range(12)))
                    self.assertEqual(list(file["halves"][:12]), [i / 2 for i in range(12)])
                with h5py.File(self.scratch / "thread.h5") as file:
                    for i in range(file.attrs["written"]):
                        self.assertTrue((file[f"x{i}"][:] == i).all())
                found = self.assert_files()
                self.assertEqual(len(found), 1)
                recordings = sorted((self.scratch / "run" / "recordings").glob("*.h5"))
                self.assertEqual([path.name for path in recordings], [f"step-{step:08d}.r0.h5" for step in asked])
                for path in (found[0], recordings[0], recordings[-1]):
                    self.assert_bit_exact(path)


if __name__ == "__main__":
    main()
