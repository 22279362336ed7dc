#include "replay/report/repro_programs.h"

namespace nanquest {

const char* const kPythonHead = R"(import ctypes, json, pathlib, sys, zlib
import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"


)";

const char* const kPythonTail = R"(

# --- tensors -------------------------------------------------------------------------------------------
def numbers(values, dtype, shape):
    return torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape).to(device)


def raw(data, dtype, shape):
    return torch.frombuffer(data, dtype=torch.uint8).clone().view(dtype).reshape(shape).to(device)


def bits(text, dtype, shape):
    """A tensor from the hexadecimal bytes of its elements."""
    return raw(bytearray.fromhex(text), dtype, shape)


def stored(name, dtype, shape):
    """A tensor from the .safetensors file beside this script."""
    path = pathlib.Path(__file__).with_suffix(".safetensors")
    if not path.exists():
        print(f"{path} is missing: it belongs beside this script", file=sys.stderr)
        sys.exit(3)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return raw(bytearray(data[8 + size + begin:8 + size + end]), dtype, shape)


def strided(values, strides):
    """The same elements, laid out as they were."""
    return torch.empty_strided(values.shape, strides, dtype=values.dtype, device=device).copy_(values)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value] if value is None or isinstance(value, torch.Tensor) else []


# --- running it ----------------------------------------------------------------------------------------
def run(op, arguments):
    """Everything that the op makes: what it returns, then what it writes and doesn't return."""
    returned = op(**arguments)
    return (flat(returned) if returned is not None else []) + flat([arguments[name] for name in WRITTEN])


def raised(value, wide):
    """The same argument in a wider format."""
    if isinstance(value, torch.Tensor) and value.is_complex():
        return value.to(torch.complex128 if wide == torch.float64 else torch.complex64)
    if isinstance(value, torch.Tensor):
        return value.to(wide) if value.is_floating_point() else value
    if isinstance(value, torch.dtype):
        return wide if value.is_floating_point else value
    return [raised(v, wide) for v in value] if isinstance(value, list) else value


def look(title, tensors, recorded):
    """Prints what the tensors hold; returns how many elements are not finite."""
    bad = 0
    for (name, t), was in zip(tensors, recorded):
        if t is None or was is None:
            continue
        real = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t).detach().cpu().resolve_neg().contiguous()
        wide = real.double()
        nan, inf = int(wide.isnan().sum()), int(wide.isinf().sum())
        finite = wide[wide.isfinite()].abs()
        line = f"{title}: {name}: {str(t.dtype)[6:]} {list(t.shape)}: {nan} NaN, {inf} Inf"
        if finite.numel():
            line += f", largest finite {float(finite.max()):g}"
        if was:
            crc = zlib.crc32((ctypes.c_ubyte * (real.numel() * real.element_size())).from_address(real.data_ptr()))
            line += "; bit for bit as recorded" if was == (nan, inf, crc) else f"; recorded: {was[0]} NaN, {was[1]} Inf, other bits"
        print(line)
        bad += nan + inf
    return bad


def outputs(tensors):
    return [(f"output {i}", t) for i, t in enumerate(tensors)]


def through_autograd(op, arguments, gradients):
    """What the forward op sends back for these gradients of what it returns."""
    leaves = []

    def leaf(value, name):
        if isinstance(value, list):
            return [leaf(v, f"{name}[{i}]") for i, v in enumerate(value)]
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            leaves.append((f"gradient of {name}", value.requires_grad_()))
            return value.clone()
        return value

    returned = flat(op(**{name: leaf(value, name) for name, value in arguments.items()}))
    pairs = [(t, g) for t, g in zip(returned, gradients) if g is not None and t.requires_grad]
    if not pairs:
        pairs = [(t, torch.ones_like(t)) for t in returned if t is not None and t.requires_grad]
    found = torch.autograd.grad([t for t, _ in pairs], [t for _, t in leaves], [g for _, g in pairs], allow_unused=True)
    return [(name, g) for (name, _), g in zip(leaves, found)]


def main():
    print(TITLE)
    op, arguments = call()
    prepare()
    bad = look("as recorded", outputs(run(op, arguments)), RECORDED)
    for wide in WIDER:
        title = f"in {str(wide)[6:]}"
        try:
            arguments = {name: raised(value, wide) for name, value in call()[1].items()}
            if "half_to_float" in arguments:
                arguments["half_to_float"] = False
            look(title, outputs(run(op, arguments)), [None if was is None else () for was in RECORDED])
        except Exception as error:
            print(f"{title}: not possible: {error}")
    if FORWARD:
        title = "through autograd"
        try:
            found = through_autograd(*FORWARD())
            look(title, found, [()] * len(found))
        except Exception as error:
            print(f"{title}: not possible: {error}")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception as error:
        print(f"can't be run: {error}", file=sys.stderr)
        code = 2
    sys.exit(code)
)";

}  // namespace nanquest
