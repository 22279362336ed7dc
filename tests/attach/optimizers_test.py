"""What happens to updates and to the program's memory when an incident is found, and when none is."""

from attached import PROGRAMS, AttachTest, main

MLP = PROGRAMS / "mlp.py"

# Only the second optimizer's gradient is bad, and only it writes the kernel.
TWO = """
import torch
torch.manual_seed(0)
net, kernel = torch.nn.Linear(4, 1), torch.nn.Linear(1, 3)
first, second = torch.optim.SGD(net.parameters(), lr=0.01), torch.optim.SGD(kernel.parameters(), lr=0.01)
for step in range(8):
    first.zero_grad(), second.zero_grad()
    width = kernel(torch.ones(1)).square().sum()
    (net(torch.randn(8, 4)).square().mean() + (width * (step != 5)).sqrt()).backward()
    first.step(), second.step()
"""


class OptimizersTest(AttachTest):
    def test_skip_is_as_if_the_step_had_not_been_called(self):
        process = self.plain(PROGRAMS / "skip.py", "runs")
        self.assert_exit(process)
        lines = process.stdout.splitlines()
        self.assertEqual(lines[:-1], [])
        self.assertGreater(int(lines[-1].split()[1]), 100)

    def test_stop_says_why_and_what_was_seen(self):
        for level in ("guard", "trace", "watch"):
            with self.subTest(level):
                process = self.observed(MLP, "adamw", 4, "nan", run_dir=level,
                                        options=("--level", level, "--on-incident", "stop"))
                self.assert_exit(process, 4)
                why, seen = self.probes_lines(process)
                self.assertIn("stopped", why)
                self.assertIn("step 4", why)
                self.assertIn("1 incident in 4 steps", seen)
                self.assertEqual(len(self.incidents(level)), level != "guard")

    def test_a_step_is_on_record_until_its_last_optimizer(self):
        (self.scratch / "two.py").write_text(TWO)
        process = self.observed(self.scratch / "two.py", options=("--keep-percent", "0"))  # nor is the first one's update kept
        self.assert_exit(process)
        self.assertEqual([file.name for file in self.incidents()], ["step-00000005.r0.h5"], process.stderr)
        verdict = self.replay("diagnose", self.incidents()[0])
        self.assertEqual((verdict["cause"], verdict["reproduction"]["bit_exact"]), ("SINGULAR_GRAD", True), verdict)

    def test_models_are_freed(self):
        for level, policy in (("guard", "fallback_fp32"), ("trace", "fallback_fp32"), ("watch", "continue")):
            with self.subTest(level):
                process = self.plain(PROGRAMS / "freed.py", f"run-{level}", level, policy)
                self.assert_exit(process)
                self.assertEqual(process.stdout, "freed\n")
                self.assertEqual(process.stderr, "")


if __name__ == "__main__":
    main()
