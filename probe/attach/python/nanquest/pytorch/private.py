"""Private names of PyTorch that the probe uses: here, and nowhere else in the package. Other versions may lack some.
tests/attach/private_names_test.py lists which are missing, and what does not work then.

Values are looked up when this module is imported. What PyTorch imports late is given by its path and looked up later.
"""

from __future__ import annotations

import dataclasses
import sys

import torch
import torch._subclasses.fake_tensor
import torch._subclasses.functional_tensor
import torch.utils._python_dispatch
import torch.utils._pytree
import torch.utils.data.dataloader

from ..base.library import Unfit


@dataclasses.dataclass(frozen=True)
class Name:
    """A private name, written like "torch._inductor.compile_fx:_compile_fx_inner". With `of_objects`, an attribute that each object of
    the class has."""

    path: str
    without: str  # what does not work if it is missing
    needed: bool = False  # without it the probe is off
    objects: bool = False

    @property
    def module(self) -> str:
        return self.path.partition(":")[0]

    @property
    def last(self) -> str:
        return self.path.rpartition(":")[2].rpartition(".")[2]

    def owner(self):
        """The object that has it as an attribute; None if that is missing or not imported yet."""
        found = sys.modules.get(self.module)
        for part in self.path.partition(":")[2].split(".")[:-1]:
            found = getattr(found, part, None)
        return found

    def find(self):
        """The thing itself, None if it is missing or not imported yet."""
        return getattr(self.owner(), self.last, None)


NAMES = []


def _later(path: str, without: str) -> Name:
    NAMES.append(Name(path, without))
    return NAMES[-1]


def _optional(path: str, without: str):
    return _later(path, without).find()


def _needed(path: str, what_for: str):
    """The thing, or Unfit: without it the probe could change a training, or report nonsense."""
    NAMES.append(name := Name(path, what_for, needed=True))
    if (found := name.find()) is None:
        raise Unfit(
            f"PyTorch {torch.__version__} has no {path.replace(':', '.')}, which the probe needs {what_for}; the program runs "
            "without the probe"
        )
    return found


def _of_objects(kind: str, names: str, without: str) -> None:
    NAMES.extend(Name(f"{kind}.{name}", without, objects=True) for name in names.split())


# Used at every pass.
dispatch_modes = _needed("torch:_C._len_torch_dispatch_stack", "to tell a training from a trace")
transforms = _needed("torch:_C._functorch.peek_interpreter_stack", "to tell a training from a transform")
tracing_state = _needed("torch:_C._get_tracing_state", "to tell a training from a trace")
graph_task = _needed("torch:_C._current_graph_task_id", "to tell a backward pass from a forward pass")
is_wrapped = _needed("torch:_C._functorch.is_functorch_wrapped_tensor", "to leave tensors of a transform alone")

# torch.compile.
without_modes = _needed("torch.utils._python_dispatch:_disable_current_modes", "to call its library while something is compiled")
is_fake = _needed("torch._subclasses.fake_tensor:is_fake", "to tell a compilation from a run")
FunctionalTensor = _needed("torch._subclasses.functional_tensor:FunctionalTensor", "to tell a compilation from a run")
OpOverload = _needed("torch._ops:OpOverload", "to tell operators from functions")
HigherOrderOperator = _optional("torch._ops:HigherOrderOperator", "graphs of regions with flex attention")
FakeTensor = _optional("torch._subclasses.fake_tensor:FakeTensor", "graphs of regions with flex attention")
fake_tensor_tls = _optional("torch._subclasses.fake_tensor:fake_tensor_tls", "graphs of regions with flex attention")
tree_map = _optional("torch.utils._pytree:tree_map", "graphs of regions with flex attention")
plain_attention = {
    "flex_attention": _later("torch._higher_order_ops.flex_attention:sdpa_dense", "graphs of regions with flex attention"),
    "flex_attention_backward": _later(
        "torch._higher_order_ops.flex_attention:sdpa_dense_backward", "graphs of regions with flex attention"
    ),
}
frame_strategy = _optional("torch:_C._dynamo.eval_frame._FrameExecStrategy", "steps of programs that call backward inside what is compiled")
frame_action = _optional("torch:_C._dynamo.eval_frame._FrameAction", "steps of programs that call backward inside what is compiled")
set_code_strategy = _optional(
    "torch:_C._dynamo.eval_frame.set_code_exec_strategy", "steps of programs that call backward inside what is compiled"
)
compiled_call = _later("torch._inductor.output_code:CompiledFxGraph.__call__", "compiled regions: what they compute is on no record")
compile_inner = _later("torch._inductor.compile_fx:_compile_fx_inner", "graphs of compiled regions, which replay runs")
use_autograd_cache = _later(
    "torch._functorch.aot_autograd:should_use_local_autograd_cache", "graphs of compiled regions that PyTorch's cache has"
)
autograd_config = _later("torch._functorch.config:force_autograd_cache", "a cache that is asked for by force_autograd_cache")
compiling = _later(
    "torch._dynamo.callback:CompilationCallbackHandler.install_callbacks",
    "the line between a compilation and a step: ops of both are on record",
)
_of_objects("torch._inductor.output_code:CompiledFxGraph", "mutated_input_idxs output_strides", "updates inside compiled regions")

# Operators.
schema_of = _optional("torch:_C._get_schema", "nanquest.reference")
python_definitions = _later("torch._library.custom_ops:OPDEFS", "operators that programs write in Python, in eager steps")
python_shortcut = _later("torch._ops:OpOverload._enable_pyobj_dispatch", "operators that programs write in Python, in eager steps")
_of_objects("torch._library.custom_ops:CustomOpDef", "_init_fn _opoverload", "operators that programs write in Python, in eager steps")
_of_objects("torch._ops:OpOverload", "_schema", "graphs of compiled regions, which replay runs")
_of_objects("torch.library:Library", "_destroy", "a second nanquest.reference of one operator")

# Functions that hooks replace or call.
engine = _needed("torch.autograd:_engine_run_backward", "to know where a backward pass begins")
function_gradient = _later("torch._functorch.eager_transforms:grad_and_value_impl", "steps of programs that train by torch.func.grad")
all_transforms = _optional("torch:_C._functorch.get_interpreter_stack", "steps of programs that train by torch.func.grad")
TransformType = _optional("torch:_C._functorch.TransformType", "steps of programs that train by torch.func.grad")
get_unwrapped = _optional("torch:_C._functorch.get_unwrapped", "steps of programs that train by torch.func.grad")
tree_leaves = _optional("torch.utils._pytree:tree_leaves", "steps of programs that train by torch.func.grad")
checkpoint_notes = _later(
    "torch.utils.checkpoint:_allowed_determinism_checks_to_fns", "comparing what checkpointing computes again (use_reentrant=False)"
)
init_optimizer = _later(
    "torch.distributed.checkpoint.state_dict:_init_optim_state", "updates that only make an optimizer's state: they count as steps"
)
pipeline_stage = _later("torch.distributed.pipelining.stage:_PipelineStageBase.forward_one_chunk", "micro-batches of pipelines")
default_store = _later(
    "torch.distributed.distributed_c10d:_get_default_store",
    "comparing replicas by the launcher's store; ranks that agree to leave an update out",
)
autocast_devices = _optional("torch:_C._autocast_supported_devices", "the fp32 fallback")
loader_iterator = _optional("torch.utils.data.dataloader:_BaseDataLoaderIter", "samples by index, and the quarantine")
dataset_kind = _optional("torch.utils.data.dataloader:_DatasetKind", "samples by index, and the quarantine")
_of_objects(
    "torch.utils.data.dataloader:_BaseDataLoaderIter",
    "_sampler_iter _dataset _dataset_kind _index_sampler _next_index",
    "samples by index, and the quarantine",
)
_of_objects("torch.utils.data.dataloader:_MultiProcessingDataLoaderIter", "_in_order", "samples of loaders that give batches out of order")
_of_objects("torch.utils.data.dataloader:DataLoader", "_index_sampler", "samples of a Trainer's batches")
_of_objects("torch.nn:Module", "_parameters _buffers _modules", "names of weights, buffers and modules")
_of_objects("torch.nn:Module", "_non_persistent_buffers_set", "updates that are left out on a device without a wait")
_of_objects("torch:Tensor", "_version", "updates that are left out on a device without a wait")
_of_objects("torch.amp:GradScaler", "_scale _per_optimizer_states", "the loss scale, and updates that a scaler leaves out")
_of_objects("torch.amp.autocast_mode:autocast", "_enabled", "the fp32 fallback, and the format of a rehearsal")
_of_objects("torch.nn.parallel.distributed:DistributedDataParallel", "_join_config _comm_hooks", "comparing replicas")
_of_objects("torch.distributed.tensor:DTensor", "_local_tensor", "weights that fully_shard and tensor parallelism spread")
