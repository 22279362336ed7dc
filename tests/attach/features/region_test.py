"""Regions of torch.compile opened: the operator inside is named, with its module, cause and a fix, forward and backward; where
the compiled code is wrong, COMPILER. The programs know nothing of the probe."""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest, main, nightly  # noqa: E402

# What goes bad is step 3; WHAT says how.
PROGRAM = """
import os, sys, torch
from torch import nn
WHAT, DYNAMIC = sys.argv[2], sys.argv[3] == "dynamic"

if WHAT in ("python", "zero", "eager"):      # operators that a module of the program's defines
    import own_kernels
if WHAT == "custom":                # an operator of a library of the program's own
    torch.ops.load_library(os.environ["OPERATORS"])
    torch.library.register_fake("nanquest_test_cpp::split_sign")(lambda x: (torch.empty_like(x), torch.empty_like(x)))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x, shift):
        y = self.fc(self.norm(x))
        if WHAT == "overflow":      # fp16 ends at 65504
            y = (y.half() @ (shift * torch.ones(16, 16)).half()).float()
        if WHAT == "custom":
            low, high = torch.ops.nanquest_test_cpp.split_sign(y.detach())
            y = y + low + high
        if WHAT == "eager":
            y = own_kernels.raised(1 + y, 1 + shift)
        if WHAT in ("python", "zero"):
            y = own_kernels.raised(own_kernels.inverse((1 + y.sigmoid()) * shift.clamp(max=1)), 1 + shift)
        if WHAT in ("domain", "custom"):
            y = (y.sigmoid() + shift).log()
        if WHAT == "backward":      # finite forward; the derivative of sqrt at 0 is infinite, times 0
            y = (y * shift).square().sum(-1, keepdim=True).sqrt() + y
        return x + y

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.batch = nn.BatchNorm1d(16)     # a region writes its buffers
        self.drop = nn.Dropout(0.1 if WHAT == "dropout" else 0.0)

    def forward(self, x, shift):
        x = self.blocks[0](x, {"domain": 0.5, "custom": 0.5, "overflow": 0.1}.get(WHAT, 1.0) * torch.ones(()))
        x = self.drop(self.batch(x))
        return (self.blocks[1](x, shift) / (shift if WHAT == "dropout" else 1)).square().mean()

if WHAT == "miscompiled":           # a pass of the compiler that gets a sign wrong
    import torch._inductor.config as settings
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Wrong(CustomGraphPass):
        def __call__(self, graph):
            for node in graph.nodes:
                if node.target is torch.ops.aten.rsqrt.default:
                    with graph.inserting_before(node):
                        node.args = (graph.call_function(torch.ops.aten.neg.default, (node.args[0],)),)

        def uuid(self):
            return "a wrong pass"

    settings.post_grad_custom_post_pass = Wrong()

torch.manual_seed(0)
net = Net()
compiled = net if WHAT == "eager" else torch.compile(net, dynamic=DYNAMIC)
if WHAT == "healthy":               # compiled and called before anything is trained
    with torch.no_grad():
        compiled(torch.randn(3, 16), torch.tensor(1.0))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
good, bad = {"overflow": (0.1, 6e4), "domain": (0.5, -2.0), "custom": (0.5, -2.0), "python": (1.0, 1e5), "eager": (1.0, 1e5), "zero": (1.0, 0.0), "backward": (1.0, 0.0), "dropout": (1.0, 0.0),
             "miscompiled": (1.0, 1.0), "healthy": (1.0, 1.0)}[WHAT]
for step in range(5):
    optimizer.zero_grad()
    compiled(torch.randn(6 + (step if DYNAMIC else 0), 16), torch.tensor(bad if step == 3 else good)).backward()
    optimizer.step()
torch.save(net.state_dict(), sys.argv[1])
if WHAT == "healthy":
    from torch._dynamo.utils import counters
    print("graphs", counters["stats"]["unique_graphs"])
"""

# Kernels as people wrap theirs (Triton's, CUDA's through ctypes): nothing of them runs by PyTorch's operators. The second has a
# fault of its own: on the way it is in fp16.
KERNELS = """
import numpy, torch
import nanquest

@torch.library.custom_op("own_kernels::inverse", mutates_args=())
def inverse(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(1 / x.detach().numpy())

inverse.register_fake(lambda x: torch.empty_like(x))
inverse.register_autograd(lambda ctx, gradient: -gradient * ctx.saved_tensors[0] ** 2,
                          setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))

@nanquest.reference("own_kernels::inverse")
def inverse_is(x):
    return 1 / x

@torch.library.custom_op("own_kernels::raised", mutates_args=())
def raised(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy((x.detach().numpy().astype(numpy.float16) * by.numpy().astype(numpy.float16)).astype(x.numpy().dtype))

raised.register_fake(lambda x, by: torch.empty_like(x))
raised.register_autograd(lambda ctx, gradient: (gradient * ctx.by, None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))

@nanquest.reference("own_kernels::raised")
def raised_is(x, by):
    return x * by
"""

# On another machine they have no kernel, or one that needs its device: only what they are to compute.
ELSEWHERE = """
import torch
import nanquest
import beside    # a module of the program's own

print("loading kernels")
if len(beside.KERNELS) > 1:
    for name, signature in beside.KERNELS.items():
        def fails(*given):
            raise RuntimeError("0 active drivers")
        torch.library.custom_op("own_kernels::" + name, fails, mutates_args=(), schema=signature)
else:
    torch.library.define("own_kernels::inverse", "(Tensor x) -> Tensor")
    torch.library.define("own_kernels::raised", "(Tensor x, Tensor by) -> Tensor")
nanquest.reference("own_kernels::inverse")(lambda x: 1 / x)
nanquest.reference("own_kernels::raised")(lambda x, by: x * by)
nanquest.reference("own_kernels::raised")(lambda x, by: x * by)    # a notebook's cell that is run again
"""
ABSENT, FAILING = "KERNELS = {}", "KERNELS = {'inverse': '(Tensor x) -> Tensor', 'raised': '(Tensor x, Tensor by) -> Tensor'}"


class RegionTest(AttachTest):
    def verdict_of(self, what, level, dynamic=False, **variables):
        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        run = f"{what}-{level}"
        process = self.observed(program, f"{run}.pt", what, "dynamic" if dynamic else "static", run_dir=run,
                                options=("--level", level, "--watch-every", "0"), **variables)
        self.assert_exit(process)
        snapshot = self.incidents(run)[0]
        self.assertEqual(snapshot.name, f"step-{0 if what == 'miscompiled' else 3:08}.r0.h5")
        self.assert_bit_exact(snapshot)
        return self.replay("diagnose", snapshot)

    def assert_inside(self, verdict, op, module, line):
        culprit = verdict["culprit"]
        self.assertEqual((culprit["op"], culprit["module"], culprit["inside"]), (op, module, "nanquest::compiled_region"), verdict)
        source = PROGRAM.splitlines()[int(culprit["stack"][0].split(":")[1].split()[0]) - 1]
        self.assertIn(line, source, culprit["stack"])

    def test_an_overflow_in_a_module(self):
        verdict = self.verdict_of("overflow", "trace")
        self.assert_inside(verdict, "aten::mm", "blocks.1", "y.half()")
        self.assertEqual(verdict["cause"], "FP16_OVERFLOW", verdict)
        self.assertTrue(verdict["fix"] and verdict["fix"]["verified"], verdict)

    def test_the_backward_pass(self):
        verdict = self.verdict_of("backward", "watch")
        self.assertEqual(verdict["phase"], "backward")
        self.assertEqual(verdict["culprit"]["inside"], "nanquest::compiled_region", verdict)
        self.assertEqual(verdict["culprit"]["module"], "blocks.1", verdict)
        self.assertEqual(verdict["cause"], "SINGULAR_GRAD", verdict)
        self.assertTrue(verdict["fix"] and verdict["fix"]["verified"], verdict)

    def test_a_compiler_that_is_wrong(self):
        verdict = self.verdict_of("miscompiled", "watch")
        self.assertEqual(verdict["reproduction"]["opaque_ops"], 2, "what it took to compile is no part of the step")
        self.assertEqual((verdict["cause"], verdict["culprit"]["op"]), ("COMPILER", "nanquest::compiled_region"), verdict)

    def test_a_training_that_is_well_keeps_its_bits_and_its_graphs(self):
        import torch

        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        plain = self.plain(program, "plain.pt", "healthy", "dynamic")
        self.assert_exit(plain)
        process = self.observed(program, "seen.pt", "healthy", "dynamic")
        self.assert_exit(process)
        self.assertIn("no incident in 5 steps", process.stderr)
        self.assertEqual(plain.stdout, process.stdout, "as many graphs: dynamic shapes stay dynamic")
        plain, seen = (torch.load(self.scratch / f) for f in ("plain.pt", "seen.pt"))
        for name, value in plain.items():
            self.assertEqual(value.numpy().tobytes(), seen[name].numpy().tobytes(), name)

    def test_an_operator_of_the_programs_own(self):
        """Replay looks inside once it has been given the library."""
        library = os.environ["NANQUEST_TEST_OPS"]
        verdict = self.verdict_of("custom", "trace", OPERATORS=library)
        self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("nanquest::compiled_region", "UNKNOWN"), verdict)
        self.assertTrue(any("no operator nanquest_test_cpp::split_sign here" in line and "--load" in line
                            for line in verdict["not_tested"]), verdict)
        verdict = self.replay("diagnose", "--load", library, self.incidents("custom-trace")[0])
        self.assert_inside(verdict, "aten::log", "blocks.1", ".log()")
        self.assertEqual(verdict["cause"], "DOMAIN", verdict)

    def imported(self, module, snapshot):
        process = self.nanquest("replay", "--import", module, "diagnose", "--json", snapshot)
        self.assertEqual(process.returncode, 1, process.stderr)
        return json.loads(process.stdout)

    def test_an_operator_that_is_written_in_python(self):
        """Replay looks inside where Python has the module, and asks the reference whether the kernel is to blame."""
        (self.scratch / "own_kernels.py").write_text(KERNELS)
        verdict = self.verdict_of("python", "trace")
        snapshot = self.incidents("python-trace")[0]
        self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("nanquest::compiled_region", "UNKNOWN"), verdict)
        self.assertTrue(any("nanquest replay --import MODULE" in line for line in verdict["not_tested"]), verdict)
        for module in ("own_kernels", str(self.scratch / "own_kernels.py")):
            with self.subTest(module):
                verdict = self.imported(module, snapshot)
                self.assert_inside(verdict, "own_kernels::raised", "blocks.1", "own_kernels.raised")
                self.assertIn("it is the kernel that goes wrong", verdict["explanation"])
        verdict = self.imported(self.elsewhere(ABSENT), snapshot)  # the compiler is not blamed for a kernel that is not here
        self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("nanquest::compiled_region", "UNKNOWN"), verdict)
        self.assertIn("the own kernels are not here", verdict["explanation"])
        for arguments, says in ((("--import", "no_such_kernels", snapshot), "No module named 'no_such_kernels'"),
                                ((snapshot, "--import"), "--import needs the name of a module")):
            process = self.nanquest("replay", *arguments)
            self.assertEqual(process.returncode, 2, process.stderr)
            self.assertIn(says, process.stderr)
            self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)

    def test_an_operator_that_is_only_known_by_its_reference(self):
        (self.scratch / "own_kernels.py").write_text(KERNELS)
        self.verdict_of("zero", "trace")
        snapshot = self.incidents("zero-trace")[0]
        verdict = self.imported("own_kernels", snapshot)
        self.assert_inside(verdict, "own_kernels::inverse", "blocks.1", "own_kernels.raised")
        self.assertIn("it is what the operator computes", verdict["explanation"])
        for kernels in (ABSENT, FAILING):
            with self.subTest(kernels):
                verdict = self.imported(self.elsewhere(kernels), snapshot)
                self.assert_inside(verdict, "own_kernels::inverse", "blocks.1", "own_kernels.raised")
                self.assertIn("it is what the operator computes", verdict["explanation"])
                self.assertTrue(any("own kernels of own_kernels::inverse" in line for line in verdict["not_tested"]), verdict)

    def test_the_same_in_a_step_that_is_not_compiled(self):
        """It is run again, asked about, and where it fails here its recorded outputs are taken."""
        (self.scratch / "own_kernels.py").write_text(KERNELS)
        self.verdict_of("eager", "trace")
        snapshot = self.incidents("eager-trace")[0]
        verdict = self.imported("own_kernels", snapshot)
        self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("own_kernels::raised", "UNKNOWN"), verdict)
        self.assertIn("it is the kernel that goes wrong", verdict["explanation"])
        for kernels in (ABSENT, FAILING):
            with self.subTest(kernels):
                verdict = self.imported(self.elsewhere(kernels), snapshot)
                self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
                self.assertEqual(verdict["culprit"]["op"], "own_kernels::raised", verdict)

    def elsewhere(self, kernels):
        folder = self.scratch / "other"
        folder.mkdir(exist_ok=True)
        (folder / "beside.py").write_text(kernels)
        (folder / "elsewhere.py").write_text(ELSEWHERE)
        return folder / "elsewhere.py"

    @nightly
    def test_other_shapes_and_levels(self):
        for level in ("trace", "watch"):
            with self.subTest(level):
                verdict = self.verdict_of("domain", level, dynamic=True)
                self.assert_inside(verdict, "aten::log", "blocks.1", ".log()")
                self.assertEqual(verdict["cause"], "DOMAIN", verdict)

    @nightly
    def test_with_numbers_that_the_kernels_draw(self):
        verdict = self.verdict_of("dropout", "watch")
        self.assert_inside(verdict, "aten::div", "Net", "shift if WHAT")
        self.assertTrue(any("random numbers" in line for line in verdict["not_tested"]), verdict)

    @nightly
    def test_a_cache_that_has_the_graphs(self):
        """PyTorch's own switch keeps its cache of autograd's graphs on: then the region can't be opened, and a line says so."""
        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        for run in ("first", "second"):
            self.assert_exit(self.observed(program, f"{run}.pt", "domain", "static", run_dir=run,
                                           options=("--level", "watch"), TORCHINDUCTOR_AUTOGRAD_CACHE="1",
                                           TORCHINDUCTOR_CACHE_DIR=str(self.scratch / "cache")))
        verdict = self.replay("diagnose", self.incidents("second")[0])
        self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("nanquest::compiled_region", "UNKNOWN"), verdict)
        self.assertTrue(any("its graph is not in this file" in line for line in verdict["not_tested"]), verdict)


if __name__ == "__main__":
    main()
