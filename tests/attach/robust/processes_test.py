"""Fork, multiprocessing, a sudden end: the children and the parent's files are as they should be."""

from robust import RobustTest, main, nightly


class ProcessesTest(RobustTest):
    def assert_parents_files(self, steps, incident):
        found = self.assert_files()
        self.assertEqual([p.name for p in found], [f"step-{incident:08d}.r0.h5"])
        self.assertEqual(self.steps_in_series(), list(range(steps)))
        self.assert_bit_exact(found[0])

    @nightly
    def test_forked_children_that_end_in_order(self):
        self.assert_same("processes", "fork")
        self.assert_parents_files(8, 6)
        self.assertEqual(list((self.scratch / "run").glob("process-*")), [])

    def test_forked_children_that_train_on(self):
        process = self.assert_same("processes", "fork-trains", level="trace")
        self.assert_parents_files(8, 6)
        # The children's own bad steps are ignored.
        self.assertEqual(len([line for line in self.probes_lines(process) if ": step " in line]), 2, process.stderr)

    @nightly
    def test_a_forked_child_that_ends_late(self):
        self.assert_same("processes", "fork-late", level="guard")
        self.assert_files()
        self.assertEqual(self.steps_in_series(), list(range(1009)))

    @nightly
    def test_multiprocessing_fork(self):
        self.assert_same("processes", "mp-fork")
        self.assert_parents_files(8, 6)

    @nightly
    def test_multiprocessing_spawn(self):
        self.assert_same("processes", "mp-spawn")
        children = sorted((self.scratch / "run").glob("process-*"))
        self.assertEqual(len(children), 1)
        found = self.assert_files(f"run/{children[0].name}")
        self.assertEqual([p.name for p in found], ["step-00000003.r0.h5"])

    def test_a_sudden_end(self):
        self.assert_same("processes", "os-exit", code=7)
        found = self.assert_files(killed=True)
        self.assertEqual([p.name for p in found], ["step-00000006.r0.h5"])
        self.assert_bit_exact(found[0])


if __name__ == "__main__":
    main()
