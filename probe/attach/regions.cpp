// What Python reports of graphs compiled by torch.compile: one op for each call, since what runs inside can't
// be observed, and the graph that the compiler was given.
#include <torch/library.h>

#include <optional>
#include <string>

#include "probe/attach/region_graphs.h"
#include "probe/observe/observer.h"

namespace nanquest::attach {
namespace {

void region_graph(std::int64_t number, std::string graph) {
  keep_region_graph(number, std::move(graph));
}

/// `graph`: the number given to `region_graph`, below 0 if there was none; `sizes`: inputs that are not
/// tensors; `written`: the inputs that it writes, `places`: their positions.
void begin_region(at::TensorList inputs, std::int64_t graph, at::IntArrayRef sizes, at::IntArrayRef places,
                  at::TensorList written) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kCompiledRegion, "");
  const c10::IValue arguments[] = {c10::IValue(inputs), c10::IValue(graph), c10::IValue(sizes),
                                   c10::IValue(places), c10::IValue(written)};
  open_region(traits_of(op), arguments);
}

void end_region(at::TensorList outputs) {
  const c10::IValue returns[] = {c10::IValue(outputs)};
  close_region(returns);
}

/// The region ended with an exception.
void leave_region() {
  close_region({});
}

/// PyTorch's own work during a compilation is not computed by the program: ops of this thread in between are
/// ignored. Can be nested.
void compiling(bool begins) {
  thread_local int depth = 0;
  thread_local std::optional<ObserverPause> pause;
  if (begins) {
    if (depth++ == 0) pause.emplace();
  } else if (depth > 0 && --depth == 0) {
    pause.reset();
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(nanquest, m) {
  // A name for traces; it is never called.
  m.def(
      "compiled_region(Tensor[] inputs, int graph, int[] sizes, int[] places, Tensor(a!)[] written) -> "
      "Tensor[]");
  m.def("compiling(bool begins) -> ()", &compiling);
  m.def("region_graph(int number, str graph) -> ()", &region_graph);
  m.def("begin_region(Tensor[] inputs, int graph, int[] sizes, int[] places, Tensor[] written) -> ()",
        &begin_region);
  m.def("end_region(Tensor[] outputs) -> ()", &end_region);
  m.def("leave_region() -> ()", &leave_region);
}

}  // namespace nanquest::attach
