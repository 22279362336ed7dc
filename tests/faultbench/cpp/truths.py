"""Truths of the C++ programs, written as those of the Python families (common/truth.py) before the tool is asked; check_cpp.py checks them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))

from truth import Case, Program, Truth  # noqa: E402

ALL = ("loss", "gradient")  # the guard keeps them from the weights
VARY = {"strike": (3, 5, 8), "seed": (1, 2, 3)}
LATE = {"strike": (7, 8), "seed": (1, 2, 3)}


def case(name, truth, vary=None, **program):
    return Case(name, None, Program(net="cpp", **{"strike": 4, **program}), truth, {}, VARY if vary is None else vary)


FAMILIES = {
    "rows": ("1bit-MONSTER/1bit-MONSTER #656", [
        case("whole", Truth(cause="ALL_MASKED_ROW", phase="forward", op=("_softmax",), module=("blocks.3.part",), origin="op", precision="structural",
                            value="nan", fixes=("data", "op"), harm=ALL, decoys=("masked_fill",), by="nan_birth")),
        case("partly", Truth()),
        case("finite", Truth()),
    ]),
    "half_norm": ("nntrainer/nntrainer #3935", [
        case("zeros", Truth(cause="FP16_OVERFLOW", phase="forward", op=("pow", "square"), module=("blocks.3.part",), origin="op", precision="curable",
                            value="silent", fixes=("precision", "op"), harm=("wrong",)), precision="fp16"),
        case("loud", Truth(cause="FP16_OVERFLOW", phase="forward", op=("pow", "square"), module=("blocks.3.part",), origin="op", precision="curable",
                           value="+inf", fixes=("precision", "op"), harm=ALL), precision="fp16"),
        case("near", Truth(), precision="fp16"),
    ]),
    "zero_norm": ("clab/dynet #1232", [
        case("root", Truth(cause="SINGULAR_GRAD", phase="backward", op=("div",), module=(), origin="op", precision="structural",
                           fixes=("op",), harm=("gradient",))),
        case("library", Truth()),
        case("inside", Truth()),
    ]),
    "no_objects": ("pjreddie/darknet #566", [
        case("mean", Truth(cause="EMPTY_REDUCTION", phase="forward", op=("mean",), origin="op", also_origin=("input",), precision="structural", value="nan",
                           fixes=("data", "op"), harm=("loss",))),
        case("weighed", Truth(cause="EMPTY_REDUCTION", phase="forward", op=("mean",), origin="op", also_origin=("input",), precision="structural",
                              value="nan", fixes=("data", "op"), harm=ALL)),
        case("guarded", Truth()),
        case("one", Truth()),
    ]),
    "centred": ("apache/mxnet #6235", [
        case("resumed", Truth(cause="DOMAIN", phase="optimizer", op=("sqrt",), origin="op", also_origin=("optimizer_state",), precision="structural",
                              value="nan", fixes=("op",), harm=("weight",)), LATE, strike=7),
        case("clamped", Truth(), LATE, strike=7),
        case("kept", Truth()),
    ]),
    "labels": ("SeanNaren/warp-ctc #29", [
        case("long", Truth(cause="INFEASIBLE_TARGET", phase="forward", op=("_ctc_loss",), origin="op", also_origin=("input",), precision="structural",
                           fixes=("data", "op"), harm=ALL)),
        case("zeroed", Truth()),
        case("fits", Truth()),
    ]),
    "loaded": ("ds4dm/ecole #324, neoml-lib/neoml #576", [
        case("record", Truth(cause="BAD_DATA", phase="input", op=("addmm", "linear", "mm", "t", "view", "add"), origin="input",
                             precision="not_a_precision_matter", fixes=("data",), harm=ALL, by="read")),
        case("weight", Truth(cause="BAD_STATE", phase="input", op=("addmm", "linear", "mm", "t"), module=("blocks.5",), origin="parameter",
                             precision="not_a_precision_matter", fixes=("data",), harm=(*ALL, "weight"), by="read")),
        case("healthy", Truth()),
    ]),
}
