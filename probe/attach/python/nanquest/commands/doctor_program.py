"""What `nanquest doctor` trains to show that the probe attaches: two steps of a tiny program, and what the program sees of this machine.
It is started as a file of its own and does not import nanquest before torch.

The last line on stdout is a JSON object.
"""

import json
import os
import sys

sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != os.path.dirname(os.path.abspath(__file__))]

import torch  # noqa: E402 (not out of this folder)


def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        optimizer.step()


def devices():
    found = []
    for kind in ("cuda", "xpu", "mps"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            names = [module.get_device_name(n) for n in range(module.device_count())] if kind != "mps" else ["mps"]
            found += [[kind, name] for name in names]
    return found


def hdf5():
    """Path and version of the HDF5 that is loaded with the probe."""
    import ctypes

    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(None, 5)[-1].strip() for line in maps if "libhdf5" in line and "_hl" not in line}
    if not paths:
        return ["", ""]
    numbers = [ctypes.c_uint() for _ in range(3)]
    ctypes.CDLL(min(paths)).H5get_libversion(*map(ctypes.byref, numbers))
    return [min(paths), ".".join(str(number.value) for number in numbers)]


def main():
    train()
    state = sys.modules.get("nanquest.base.probe_state")
    attachment = state.probe.current if state else None
    facts = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "devices": devices(),
        "attached": bool(attachment and attachment.started and not attachment.off),
    }
    if facts["attached"]:
        facts["kernels"] = [[kind, attachment.ops.own_kernels(kind)] for kind in dict.fromkeys(kind for kind, _ in facts["devices"])]
        if any(kind == "cuda" for kind, _ in facts["devices"]):
            facts["no_cuda_kernels"] = attachment.ops.why_no_cuda_kernels()
        facts["hdf5"] = hdf5()
        facts["steps"] = attachment.ops.steps_made()
        sys.modules["nanquest"].detach()
    print(json.dumps(facts))


main()
