"""Reads a snapshot with h5py only, and compares every tensor with the bytes that the writer received.

usage: h5py_test.py SNAPSHOT EXPECTED_DIR   (EXPECTED_DIR/index.txt: one line "path dtype shape file" per tensor)
"""
import os
import sys

import h5py
import numpy as np

snapshot, expected = sys.argv[1:]
numpy_dtype = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8", "int32": "<i4", "int16": "<i2",
               "int8": "i1", "uint8": "u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "?",
               "complex64": "<c8", "complex128": "<c16", "float8_e4m3fn": "u1", "float8_e5m2": "u1"}
count = 0
with h5py.File(snapshot, "r") as f:
    assert f.attrs["format"].decode() == "nanquest.snapshot" and f.attrs["complete"] == 1, dict(f.attrs)
    for line in open(os.path.join(expected, "index.txt"), encoding="utf-8"):
        path, dtype, shape, name = line.rstrip("\n").split("\t")
        shape = tuple(int(n) for n in shape.split(",") if n)
        want = open(os.path.join(expected, name), "rb").read()
        d = f[path]
        assert d.attrs["dtype"].decode() == dtype and d.attrs["kind"].decode() == "tensor", path
        assert d.shape == shape, (path, d.shape, shape)
        if dtype == "bfloat16":  # h5py widens it to float32; the widened bits end in 16 zeros, except for NaN payloads
            bits = np.frombuffer(want, "<u2").astype(np.uint32) << 16
            wide = bits.view(np.float32).reshape(shape)
            got = d[()] if d.size else np.zeros(shape, np.float32)
            assert got.dtype == np.float32 and np.array_equal(got, wide, equal_nan=True), path
            raw = np.empty(shape, "<u2")  # the low-level API returns the raw bits
            if d.size:
                d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=d.id.get_type())
            assert raw.tobytes() == want, path
        else:
            got = np.asarray(d[()])
            assert got.dtype == np.dtype(numpy_dtype[dtype]), (path, got.dtype)
            assert got.tobytes() == want, path
        count += 1
    # Reads the tables as README.md in probe/snapshot describes.
    raw, cuts = f["strings/bytes"][:].tobytes(), f["strings/offsets"][:]
    strings = [raw[a:b].decode(errors="replace") for a, b in zip(cuts, cuts[1:])]
    assert [strings[i] for i in f["trace/ops/name"]] == ["aten::mm", "aten::mul"]
    assert [strings[i] for i in f["modules/path"]] == ["", "blocks.3.attention"]
    assert f["trace/ops/name"].attrs["rows_of"].decode() == "/strings"
    cuts = f["trace/tensors/sizes_offsets"][:]
    assert [list(f["trace/tensors/sizes"][a:b]) for a, b in zip(cuts, cuts[1:])] == [[2, 2], [4, 0, 3], [], []]
    environment = {strings[k]: strings[v] for k, v in zip(f["environment/key"], f["environment/value"])}
    assert environment["torch_version"] == "2.15.0", environment
    assert f["twin/step"][0] == 7_999_999_999 and f["twin/ops"][0] == 1
    assert [strings[i] for i in f["twin/values/data"]] == ["twin/data/000000", "twin/data/000001"]
    assert list(f["twin/values/slot"]) == [0, -1] and list(f["twin/values/op"]) == [-1, 1]
    columns = [strings[i] for i in f["history/scalars/columns"]]
    assert columns == ["step", "loss", "gate"] and f["history/scalars/values"].shape == (5, 3)
    assert np.isnan(f["history/scalars/values"][4, columns.index("loss")])
    kinds = []
    f.visititems(lambda name, o: kinds.append((name, o.attrs.get("kind"), o.attrs.get("kind_version"))))
    assert kinds and all(kind and version == 1 for _, kind, version in kinds), kinds
print(f"{count} tensors equal bit for bit")
sys.exit(0 if count >= 20 else 1)
