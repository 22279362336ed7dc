"""Simple ways to find a non-finite step, run on the same programs: what people do without a tool.

| name | looks at | says |
|---|---|---|
| anomaly mode | torch.autograd.detect_anomaly | step, phase "backward", the node whose backward made NaN |
| first non-finite | every output of every op; the first with NaN or an infinity | step, phase, op |
| finite in, non-finite out | the first op with finite inputs and a non-finite output | step, phase, op |
| loss | the loss | step |
| loss + gradient | the loss, and gradients before the update | step |
"""

import contextlib
import pathlib
import runpy
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "common"))
import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

NAMES = ("anomaly mode", "first non-finite", "finite in, non-finite out", "loss", "loss + gradient")
UNWRITTEN = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")


class Looker(TorchDispatchMode):
    """Notes the first op with a non-finite output, the first with finite inputs besides, and the node in which ops named in
    `wanted` made one."""

    def __init__(self, loop, wanted):
        super().__init__()
        self.loop, self.wanted, self.first, self.birth, self.nodes = loop, wanted, None, None, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        from tracer import bad, tensors
        kwargs = kwargs or {}
        op = function._schema.name.split("::")[1]
        node = torch._C._current_autograd_node()
        inputs = tensors((args, kwargs))
        before = any(bad(t) for t in inputs)
        result = function(*args, **kwargs)
        if op in UNWRITTEN:
            return result
        written = tensors(result) + (inputs if function._schema.is_mutable else [])
        if any(bad(t) for t in written):
            found = {"step": self.loop.clock.step, "phase": "backward" if node is not None else self.loop.region, "op": op}
            self.first = self.first or found
            if not before:
                self.birth = self.birth or found
            if node is not None and op in self.wanted:
                self.nodes.add(node.name())
        return result


def loop_of(file, arguments):
    """(a Loop, its case) for the program's command line."""
    import host
    cases = runpy.run_path(file)["CASES"]
    case = next(c for c in cases if c.name == arguments[0])
    case = host.varied(case, dict(a.split("=", 1) for a in arguments[2::2]))
    torch.set_num_threads(1)
    return host.Loop(case), case


def steps_of(loop, between=None):
    program = loop.program
    for loop.clock.step in range(program.strike + 1 + program.after):
        loop.clock.micro = 0
        loop.begin()
        yield loop.clock.step, loop.step(between)


def watched(file, arguments):
    """What the four ways that need no exception say, and the nodes in which the true op was bad."""
    loop, case = loop_of(file, arguments)
    said = dict.fromkeys(NAMES)
    gradients = []

    def between():
        bad = any(p.grad is not None and not bool(torch.isfinite(p.grad).all()) for p in loop.net.parameters())
        if bad:
            gradients.append(loop.clock.step)

    looker = Looker(loop, case.truth.op)
    with looker, contextlib.suppress(Exception):  # a library may refuse NaN weights in a later step
        for step, loss in steps_of(loop, between):
            if said["loss"] is None and not abs(loss) < float("inf"):
                said["loss"] = {"step": step}
    said["first non-finite"], said["finite in, non-finite out"] = looker.first, looker.birth
    seen = gradients[:1] + ([said["loss"]["step"]] if said["loss"] else [])
    said["loss + gradient"] = {"step": min(seen)} if seen else None
    return said, looker.nodes, case


def anomaly(file, arguments):
    """What detect_anomaly raises."""
    loop, _ = loop_of(file, arguments)
    try:
        with warnings.catch_warnings(), torch.autograd.detect_anomaly():
            warnings.simplefilter("ignore")
            for _ in steps_of(loop):
                pass
    except RuntimeError as error:
        if "returned nan" in str(error):
            return {"step": loop.clock.step, "phase": "backward", "node": str(error).split("'")[1]}
    return None


def judge(file, arguments):
    """{baseline: marks}, with the measures of score.py that it can have."""
    said, nodes, case = watched(file, arguments)
    said["anomaly mode"] = anomaly(file, arguments)
    truth, out = case.truth, {}
    for name in NAMES:
        found = said[name]
        if not truth.cause:
            out[name] = {"alarm": found is not None}
            continue
        out[name] = {"found": found is not None, "step": found is not None and found["step"] == case.program.strike + truth.late}
        if name.startswith("loss"):
            continue
        right = found is not None and found["phase"] == truth.phase and (found.get("op") in truth.op or found.get("node") in nodes)
        out[name]["phase_op"] = right
    return out
