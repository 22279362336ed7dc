"""The file of a bad step carries the last healthy step's batch, and replay runs the step on it."""

from attached import PROGRAMS, AttachTest, main

TWIN = PROGRAMS / "twin.py"


class TwinTest(AttachTest):
    def incident(self, what, level="trace"):
        self.clear("run")
        # Both kinds of steps: watched ones, and those that are only on record.
        process = self.observed(TWIN, what, options=("--level", level, "--watch-every", "0"))
        self.assert_exit(process)
        found = self.incidents()
        self.assertEqual([p.name for p in found[:1]], ["step-00000006.r0.h5"], process.stderr)
        return found[0]

    def said(self, snapshot):
        verdict = self.replay("diagnose", snapshot)
        said = [e["value"] for e in verdict["evidence"] if e["name"] == "the same step with the batch of step 5"]
        return verdict["cause"], said

    def test_a_batch_that_is_bad(self):
        for what, level in (("batch", "watch"), ("in-place", "trace")):
            with self.subTest(what):
                snapshot = self.incident(what, level)
                twin = self.replay("info", snapshot)["twin"]
                self.assertEqual((twin["step"], twin["tensors"]), (5, 3), twin)
                self.assertEqual(twin["bytes"], 16 * 8 * 4 + 16 * 8 + 16 * 4, twin)
                self.assertEqual(self.said(snapshot), ("BAD_DATA", ["healthy"]))
                self.assert_bit_exact(snapshot)

    def test_the_values_are_those_of_the_healthy_step(self):
        import h5py
        import torch
        snapshot = self.incident("batch")
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 4))  # draws as many numbers
        del model
        want = []
        for step in range(6):
            x, y, weights = torch.randn(16, 8), torch.randint(0, 4, (16,)), torch.rand(16)
            want = [x, y, weights]
            torch.nn.functional.dropout(torch.ones(16, 32), 0.1)
        with h5py.File(snapshot) as f:
            text, ends = f["strings/bytes"][:].tobytes(), f["strings/offsets"][:]
            paths = [text[ends[n]:ends[n + 1]].decode() for n in f["twin/values/data"][:]]
            got = [torch.from_numpy(f[path][:]) for path in paths]
        for tensor in want:
            self.assertTrue(any(g.dtype == tensor.dtype and torch.equal(g.reshape(-1), tensor.reshape(-1)) for g in got),
                            (tensor, got))

    def test_a_weight_that_is_bad(self):
        snapshot = self.incident("weight")
        self.assertEqual(self.said(snapshot), ("BAD_STATE", ["fails as well: it is not this batch"]))

    def test_another_shape_has_no_twin(self):
        snapshot = self.incident("shapes")
        self.assertNotIn("twin", self.replay("info", snapshot))
        self.assertEqual(self.said(snapshot), ("BAD_DATA", []))

    def test_no_bit_of_the_training_is_another(self):
        self.assert_exit(self.plain(TWIN, "in-place", "plain.pt"))
        self.assert_exit(self.observed(TWIN, "in-place", "observed.pt", options=("--level", "trace")))
        import torch
        plain, observed = (torch.load(self.scratch / name) for name in ("plain.pt", "observed.pt"))
        for name, tensor in plain.items():
            self.assertEqual(tensor.numpy().tobytes(), observed[name].numpy().tobytes(), name)


if __name__ == "__main__":
    main()
