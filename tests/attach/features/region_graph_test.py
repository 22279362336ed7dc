"""Graphs that the compiler is given on a GPU, run on a CPU: fused attention, formats that no CPU mixes; flex attention, whose score
and mask are functions of the program. The graphs are PyTorch's own, traced for a GPU that need not be there, and told by
region_graph.py; what replay makes of them is held against attention written down in fp64, and its derivatives."""

import json
import os
import pathlib
import subprocess
import sys

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import PACKAGE, AttachTest, main  # noqa: E402

sys.path.insert(0, str(PACKAGE))
from nanquest.compiled import region_graph  # noqa: E402

BATCH, HEADS, ROWS, WIDTH = 2, 3, 7, 8
aten = torch.ops.aten


def flash(q, k, v, gradient):
    out = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
    return out[0], *aten._scaled_dot_product_flash_attention_backward(gradient, q, k, v, *out[:6], 0.0, True, *out[6:8])


def efficient(q, k, v, gradient):
    out = aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True)
    return out[0], *aten._scaled_dot_product_efficient_attention_backward(gradient, q, k, v, None, *out, 0.0, [True, True, True, False],
                                                                          True)[:3]


def cudnn(q, k, v, gradient):
    out = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True)
    return out[0], *aten._scaled_dot_product_cudnn_attention_backward(gradient, q, k, v, out[0], out[1], out[6], out[7], None, out[2],
                                                                      out[3], out[4], out[5], 0.0, True)


def written_down(q, k, v, gradient, scores=lambda s: s):
    """Causal attention and its derivatives in fp64."""
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    s = scores(wide[0] @ wide[1].mT / WIDTH ** 0.5)
    out = s.masked_fill(hidden, -torch.inf).softmax(-1) @ wide[2]
    return out.detach(), *torch.autograd.grad(out, wide, gradient.double())


class RegionGraphTest(AttachTest):
    def run_graph(self, graph_module, tensors):
        """The result of replay for the graph as written."""
        told = region_graph.told(graph_module)
        self.assertNotIn("refused", json.loads(told), told[:300])
        (self.scratch / "graph.json").write_text(told)
        given = self.scratch / "given.pt"
        given.write_bytes(torch._C._pickle_save([t.detach() for t in tensors]))
        run = subprocess.run([os.environ["NANQUEST_REGION_RUN"], self.scratch / "graph.json", given, self.scratch / "out.pt"],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return torch._C._pickle_load_obj((self.scratch / "out.pt").read_bytes())

    def assert_near(self, got, wanted, digits):
        for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
            self.assertEqual(a.shape, b.shape)
            self.assertLess(float((a.double() - b).abs().max()), digits * float(b.abs().max()), f"output {i}")

    def traced_for_a_gpu(self, function, *tensors):
        with FakeTensorMode() as mode:
            fakes = [torch.empty(t.shape, dtype=t.dtype, device="cuda") for t in tensors]
            self.assertEqual(fakes[0].fake_mode, mode)
            return make_fx(function)(*fakes)

    def drawn(self, dtype, count=4):
        torch.manual_seed(1)
        return [torch.randn(BATCH, HEADS, ROWS, WIDTH).to(dtype) for _ in range(count)]

    def test_fused_attention_of_a_gpu(self):
        for function, dtype, digits in ((flash, torch.bfloat16, 0.02), (efficient, torch.float32, 1e-5),
                                        (efficient, torch.float16, 2e-3), (cudnn, torch.float16, 2e-3)):
            with self.subTest(function=function.__name__, dtype=dtype):
                given = self.drawn(dtype)
                outputs = self.run_graph(self.traced_for_a_gpu(function, *given), given)
                self.assertEqual({t.dtype for t in outputs}, {dtype})
                self.assert_near(outputs, written_down(*given), digits)

    def test_dropout_inside_is_told(self):
        def dropping(q, k, v, _):
            return aten._scaled_dot_product_flash_attention(q, k, v, 0.1, True)[:1]

        given = self.drawn(torch.bfloat16)
        self.assertTrue(json.loads(region_graph.told(self.traced_for_a_gpu(dropping, *given)))["draws"])
        self.assertFalse(json.loads(region_graph.told(self.traced_for_a_gpu(flash, *given)))["draws"])

    def test_formats_that_a_cpu_does_not_mix(self):
        x, = self.drawn(torch.float16, 1)
        output, = self.run_graph(self.traced_for_a_gpu(lambda x: (aten._softmax(x, -1, True),), x), [x])
        self.assertEqual(output.dtype, torch.float32)
        self.assert_near([output], [x.double().softmax(-1)], 1e-6)

    def test_flex_attention_forward_and_backward(self):
        import torch.nn.attention.flex_attention as flex
        for name in dir(flex):
            if name.startswith("_validate_device"):  # on CPUs it is compiled for forward passes alone: nothing is compiled here
                check = getattr(flex, name)
                setattr(flex, name, lambda *args, **kwargs: None)
                self.addCleanup(setattr, flex, name, check)
        graphs = []

        def keep(graph_module, _):
            graphs.append((graph_module, []))

            def call(*tensors):
                graphs[0 if "tangents" not in str(graph_module.graph) else 1][1][:] = tensors
                return graph_module(*tensors)
            return call

        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, ROWS, ROWS, device="cpu")
        slope = torch.tensor([0.1, -0.2, 0.3], requires_grad=True)
        *qkv, gradient = self.drawn(torch.float32)
        for t in qkv:
            t.requires_grad_()

        def attend(q, k, v):
            return flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: 2 * s + slope[h] * (i - j), block_mask=mask)

        compiled = torch.compile(attend, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep,
                                                              decompositions=select_decomp_table()))
        compiled(*qkv).backward(gradient)
        self.assertEqual(len(graphs), 2)
        distance = torch.arange(ROWS)[:, None] - torch.arange(ROWS)
        wide = slope.detach().double().requires_grad_()
        expected = written_down(*qkv, gradient, scores=lambda s: 2 * s + wide[:, None, None] * distance)
        forward, backward = (self.run_graph(*graph) for graph in graphs)
        self.assert_near(forward[:1], expected[:1], 1e-5)
        self.assert_near([t for t in backward if t.dim() == 4], expected[1:], 1e-5)
        self.assert_near([t for t in backward if t.shape == slope.shape], [slope.grad.double()], 1e-5)


if __name__ == "__main__":
    main()
