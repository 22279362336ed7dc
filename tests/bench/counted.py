"""What steps of a training ask of a device, counted, and of how many operations they are."""

import torch

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cuStreamSynchronize")
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
COPIES = ("cudaMemcpyAsync",)


def events_of(device, steps):
    """{"waits", "launches", "copies"} of `steps()`: the tests' device counts itself, a GPU is asked by the profiler; of a CPU nothing."""
    if device == "cpu":
        steps()
        return {}
    if device == "nqdev":
        import nqdev

        nqdev.reset_counts()
        steps()
        counts = nqdev.counts()
        return {"waits": counts["synchronisations"], "launches": counts["launches"], "copies": counts["copies"]}
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        steps()
    names = [event.name for event in seen.events()]
    return {what: sum(name in calls for name in names) for what, calls in (("waits", WAITS), ("launches", LAUNCHES), ("copies", COPIES))}


def operations_of(step):
    """How many operations `step()` dispatches below autograd, which are about those that a trace records."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    with Counter() as counter:
        step()
    return counter.count
