// What Python tells of graphs that torch.compile made: one op each, since nobody sees what runs inside.
#include <torch/library.h>

#include "probe/observe/observer.h"

namespace nanquest::attach {
namespace {

void begin_region(at::TensorList inputs) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kCompiledRegion, "");
  const c10::IValue arguments[] = {c10::IValue(inputs)};
  open_region(traits_of(op), arguments);
}

void end_region(at::TensorList outputs) {
  const c10::IValue returns[] = {c10::IValue(outputs)};
  close_region(returns);
}

/// The region was left by an exception.
void leave_region() {
  close_region({});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(nanquest, m) {
  m.def("compiled_region(Tensor[] inputs) -> Tensor[]");  // a name for traces; never called
  m.def("begin_region(Tensor[] inputs) -> ()", &begin_region);
  m.def("end_region(Tensor[] outputs) -> ()", &end_region);
  m.def("leave_region() -> ()", &leave_region);
}

}  // namespace nanquest::attach
