"""What is different in each side of planted.py and planted_ranks.py, and how the comparison may name it: (kinds, words).

Dropout draws what it keeps: with the probability 1 - p.

`kinds`: the kinds of the first finding that say so. `words`: each of these is in the finding's text.
"""

PLANTED = {
    "norm-eps": (("argument",), ("blocks.1.norm1", "eps", "1e-05", "1e-06")),
    "rms-eps": (("argument",), ("blocks.0.norm2", "1e-06", "0.001")),
    "attention-scale": (("argument",), ("blocks.1.attention", "0.353553", "0.125")),
    "missing-bias": (("operations",), ("blocks.1", "addmm", "mm")),
    "transposed-weight": (("operations", "input"), ("blocks.0",)),
    "dropout": (("argument",), ("blocks.1.dropout", "0.9", "0.8")),
    "mask-off-by-one": (("argument",), ("blocks.0.attention", "diagonal", "0", "1")),
    "optimizer-eps": (("argument",), ("eps", "1e-08", "1e-05")),
    "decay-on-norms": (("operations", "argument"), ()),
    "rope-base": (("state",), ("blocks.0.attention.cos",)),
    "tokens-off-by-one": (("batch",), ()),
    # Written before the second look at the comparison, and tried once before anything was changed.
    "other-init": (("state",), ("blocks.1.up.weight",)),
    "untied": (("operations", "state", "input", "value"), ("embedding",)),
    "positions-after-padding": (("operations", "input"), ("positions",)),
    "gelu-tanh": (("argument",), ("blocks.0", "approximate", "none", "tanh")),
    "clip-norm": (("argument", "operations"), ("0.5",)),
    "head-order": (("input", "operations"), ("blocks.1.attention",)),
    "no-all-reduce": (("operations",), ("2", "allreduce")),
    "loss-over-ranks": (("operations", "input"), ("allreduce",)),
}

# Differences that stay within the rounding of the coarser format: no finding, but `formats` names them: (formats in A and B, the first operator).
OF_FORMATS = {"bf16-accumulation": ("Float", "BFloat16", "aten::zeros")}
# What a name is compared with, where that is not the plain model.
BASES = {"untied": "tied", "positions-after-padding": "padded", "bf16-accumulation": "summed", "clip-norm": "clipped"}
# Names of planted_ranks.py.
OF_RANKS = ("no-all-reduce", "loss-over-ranks")

# over_ranks.py on one rank against this on two: the kind of the only finding ("": alike), words of its text, words of what was tried.
# The ranks of loss-over-ranks have 18 and 34 of 52 tokens.
OVER_RANKS = {
    "ddp": ("", (), ""),
    "sampled": ("", (), ""),
    "fsdp2": ("", (), ""),
    "tensor": ("", (), ""),
    "tensor no-all-reduce": ("ranks", ("aten::add in 2 ", "parts of a sum", "aten::addmm in 2.down"), ""),
    "ddp loss-over-ranks": ("ranks", ("aten::nll_loss_forward",), "weighted 0.35 and 0.65"),
    "fsdp2 loss-over-ranks": ("ranks", ("aten::nll_loss_forward",), "weighted 0.35 and 0.65"),
    # Written after the comparison, and looked at once before anything was changed.
    "ddp sums": ("ranks", ("optimizer", "aten::lerp_", "0.weight"), "each rank's own gradients are right"),
    "ddp unsynced": ("ranks", ("optimizer", "aten::lerp_", "0.weight", "parts of a sum"), "each rank's own gradients are right"),
    "tensor bias-twice": ("ranks", ("aten::add in 2 ", "only the ranks run aten::mul, aten::add before it"), ""),
    "ddp scale": ("argument", ("1.attention", "0.25", "0.3", "4 places"), "gives"),
    "tensor scale": ("argument", ("1.attention", "0.25", "0.3", "4 places"), "gives"),
    "fsdp2 decay": ("argument", ("optimizer", "0.9999", "0.9998", "27 places"), "gives"),
}

# regions.py, compiled with this: operators of the eager step of which one is the first that the region does not have, their module, the last
# value that both have.
INSIDE_REGIONS = {
    "scale": (("aten::mul",), "1.attention", "aten::bmm in 1.attention"),
    "eps": (("aten::native_layer_norm",), "0.norm", "aten::add in 0"),
}
