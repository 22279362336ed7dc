// A tracer of the bench's own: what the dispatcher tells anyone who asks, and nothing of nanquest's.
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <cstdio>

#include "host.h"

namespace faultbench {
namespace {

bool holds_bad(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && t.numel() > 0 && !at::isfinite(t).all().item<bool>();
}
bool has_nan(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && t.numel() > 0 && at::isnan(t).any().item<bool>();
}

template <class Values>
std::pair<bool, bool> look(const Values& values) {
  const at::RecordFunctionGuard quiet(false);
  std::pair<bool, bool> found;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      found.first = found.first || holds_bad(value.toTensor());
      found.second = found.second || has_nan(value.toTensor());
    }
  }
  return found;
}

struct Seen : at::ObserverContext {
  bool bad = false, nan = false, backward = false;
};
std::int64_t ops = 0, depth = 0;

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
  auto seen = std::make_unique<Seen>();
  std::tie(seen->bad, seen->nan) = look(function.inputs());
  seen->backward = torch::autograd::get_current_node() != nullptr;
  ++depth;
  return seen;
}

void finish(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* before = static_cast<const Seen*>(context);
  ++ops;
  --depth;
  const auto [is_bad, is_nan] = look(function.outputs());
  if ((is_bad && !before->bad) || (is_nan && !before->nan)) {
    std::printf("{\"op\": \"%s\", \"backward\": %s, \"birth\": %s, \"nan_birth\": %s, \"depth\": %lld}\n",
                function.name(), before->backward ? "true" : "false",
                is_bad && !before->bad ? "true" : "false", is_nan && !before->nan ? "true" : "false",
                static_cast<long long>(depth));
  }
}

}  // namespace

Tracer::Tracer() {
  ops = 0;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(start, finish)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}
Tracer::~Tracer() {
  at::removeCallback(handle_);
  std::printf("{\"ops\": %lld}\n", static_cast<long long>(ops));
}

}  // namespace faultbench
