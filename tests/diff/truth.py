"""What is different in each side of planted.py, and how the comparison may name it: (kinds, words).

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
}
