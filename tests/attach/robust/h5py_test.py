"""Two HDF5 libraries in one process, both at work: the program's files and the probe's are whole."""

from robust import NIGHT, RobustTest, main


class H5pyTest(RobustTest):
    def test_both_write(self):
        import h5py

        for order in ("before", "after") if NIGHT else ("before",):
            with self.subTest(order):
                self.clear("run")
                self.assert_same("own_files", order)
                with h5py.File(self.scratch / "mine.h5") as file:
                    self.assertEqual(list(file["steps"][:]), list(range(12)))
                    self.assertEqual(list(file["halves"][:12]), [i / 2 for i in range(12)])
                with h5py.File(self.scratch / "thread.h5") as file:
                    for i in range(file.attrs["written"]):
                        self.assertTrue((file[f"x{i}"][:] == i).all())
                found = self.assert_files()
                self.assertEqual(len(found), 8)
                self.assert_bit_exact(found[0])


if __name__ == "__main__":
    main()
