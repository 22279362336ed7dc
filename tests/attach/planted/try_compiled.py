#!/usr/bin/env python3
"""Faults inside compiled regions of GPT-2, a Llama and a ResNet: is the operation inside named, and its module and cause?

  try_compiled.py [--models NAME,NAME...] [--only REGEX] [--jobs N] [--device DEVICE] [--mode MODE]

What is true was written before the first was tried: of a dial (compiled_program.py) its function's operation, whatever of
several the compiler's graph is made of, in its module; of a spoiled weight the operation that reads it first. Goal: all
right. Exit code: 0 if so, else 1.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "matrix"), str(HERE)]

from attached import PACKAGES, PackagesTest  # noqa: E402

sys.path.append(PACKAGES)
import compiled_program as made  # noqa: E402

# Operations (the graph may hold one or the other), phase, causes.
TRUTH = {
    "log-of-negative": (("log",), "forward", ("DOMAIN",)),
    "log-of-zero": (("log",), "forward", ("LOG_ZERO",)),
    "sqrt-of-negative": (("sqrt",), "forward", ("DOMAIN",)),
    "exp-of-large": (("exp",), "forward", ("EXP_OVERFLOW",)),
    "divided-by-zero": (("div",), "forward", ("DIV_ZERO",)),
    "square-of-large": (("pow", "mul"), "forward", ("FP16_OVERFLOW",)),
    "product-in-fp16": (("mm", "bmm", "addmm"), "forward", ("FP16_OVERFLOW",)),
    "nobody-to-attend": (("_softmax", "sub"), "forward", ("ALL_MASKED_ROW",)),
    "root-of-zero": (("div",), "backward", ("SINGULAR_GRAD",)),
    "norm-of-zero": (("rsqrt",), "forward", ("EPS_UNDERFLOW", "DIV_ZERO")),
}
READS = ("addmm", "mm", "convolution", "_to_copy", "t", "permute", "convert_element_type")  # a weight
MODELS = "gpt2,llama,resnet"  # looked at while regions were opened; all others of the matrix are not


def cases(models):
    for name in models.split(","):
        dials, layers = made.places(made.models.build(name).model)
        for dial, module in zip(made.DIALS, dials):
            yield name, dial, module
        for layer in (layers[len(layers) // 3], layers[2 * len(layers) // 3]):
            yield name, layer + ".weight", layer


def judge(case, device, mode):
    """(right, line) of one case."""
    name, fault, module = case
    ops, phase, causes = TRUTH.get(fault, (READS, "input", ("BAD_STATE",)))
    test = PackagesTest()
    with tempfile.TemporaryDirectory(prefix="nanquest-compiled-") as scratch:
        test.scratch = pathlib.Path(scratch)
        process = test.observed(HERE / "compiled_program.py", name, fault, device, mode, options=("--level", "trace", "--watch-every", "0"))
        files = test.incidents()
        if process.returncode or not files:
            return False, f"no incident, exit code {process.returncode}: {process.stderr[-300:]}"
        said = test.replay("diagnose", files[0])
    culprit = said.get("culprit") or {}
    wrong = [f"step {said['step']}"] * (said["step"] != made.BAD)
    wrong += [f"operation {culprit.get('op')}"] * (str(culprit.get("op")).removeprefix("aten::") not in ops)
    wrong += [f"inside {culprit.get('inside')!r}"] * (culprit.get("inside") != "nanquest::compiled_region")
    wrong += [f"module {culprit.get('module')}, not {module}"] * (culprit.get("module") != module)
    wrong += [f"phase {said.get('phase')}"] * (said.get("phase") != phase)
    wrong += [f"cause {said.get('cause')}"] * (said.get("cause") not in causes)
    return not wrong, "; ".join(wrong) or f"{culprit['op']} in {culprit['module']}, {said['cause']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS, help="models of the matrix")
    parser.add_argument("--only", default=".*", help="cases (MODEL/FAULT) that this matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="default", help="of torch.compile: reduce-overhead, max-autotune, ...")
    options = parser.parse_args()
    asked = [case for case in cases(options.models) if re.fullmatch(options.only, "/".join(case[:2]))]
    right = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, (good, line) in zip(asked, pool.map(lambda case: judge(case, options.device, options.mode), asked)):
            right += good
            print(f"{'ok  ' if good else 'FAIL'} {case[0]:7} {case[1]:32} {line}", flush=True)
    print(f"{right} of {len(asked)} named right")
    return 0 if right == len(asked) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
