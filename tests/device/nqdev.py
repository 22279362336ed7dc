"""The device for tests in Python: `import nqdev` (library: NANQUEST_DEVICE_LIBRARY), then device="nqdev"."""

import ctypes
import os
import types

import torch

COUNTERS = ("launches", "copies", "synchronisations", "host_reads", "allocations")
FAILURES = ("out_of_memory", "launch", "lost")

_library = ctypes.CDLL(os.environ["NANQUEST_DEVICE_LIBRARY"], ctypes.RTLD_GLOBAL)
for _name, _result, _arguments in (("set_seed", None, [ctypes.c_uint64]), ("counted", ctypes.c_int64, [ctypes.c_int]),
                                   ("reset_counters", None, []), ("fail", None, [ctypes.c_int, ctypes.c_int64]),
                                   ("heal", None, []), ("pending", ctypes.c_int64, []),
                                   ("live_bytes", ctypes.c_int64, [ctypes.c_int]),
                                   ("set_limit", None, [ctypes.c_int, ctypes.c_int64])):
    _function = getattr(_library, f"nqdev_{_name}")
    _function.restype, _function.argtypes = _result, _arguments


def set_seed(seed):
    """Dice for the order in which streams run; 0: every kernel at once."""
    _library.nqdev_set_seed(seed)


def counts():
    """{"launches": …, …} since the last reset."""
    return {name: _library.nqdev_counted(i) for i, name in enumerate(COUNTERS)}


def reset_counts():
    _library.nqdev_reset_counters()


def fail(what, after=0):
    """One of FAILURES happens at the call number `after` from now on, once."""
    _library.nqdev_fail(FAILURES.index(what), after)


def heal():
    _library.nqdev_heal()


def pending():
    """Kernels and copies that have not run."""
    return _library.nqdev_pending()


def live_bytes(device=0):
    return _library.nqdev_live_bytes(device)


def set_limit(nbytes, device=0):
    _library.nqdev_set_limit(device, nbytes)


def generator(device=0):
    """The device's default generator."""
    return _module.default_generators[device]


def _index(device):
    index = device if isinstance(device, int) else torch.device(device).index
    return torch.accelerator.current_device_index() if index is None else index


def _register():
    module = types.ModuleType("torch.nqdev")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.device_count = torch.accelerator.device_count
    module.current_device = torch.accelerator.current_device_index
    module.set_device = torch.accelerator.set_device_index
    module.synchronize = torch.accelerator.synchronize
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16, torch.float32]
    module.manual_seed_all = lambda seed: [g.manual_seed(seed) for g in module.default_generators]
    module.manual_seed = lambda seed: module.default_generators[_index("nqdev")].manual_seed(seed)
    module.get_rng_state = lambda device="nqdev": module.default_generators[_index(device)].get_state()
    module.set_rng_state = lambda state, device="nqdev": module.default_generators[_index(device)].set_state(state)
    torch._register_device_module("nqdev", module)
    module.default_generators = [torch._C._accelerator_getDefaultGenerator(i) for i in range(2)]
    return module


torch.utils.rename_privateuse1_backend("nqdev")
_module = _register()
torch.utils.generate_methods_for_privateuse1_backend(for_storage=False)
