#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {

const Program& program(const std::string& name) {
  for (const Program& p : programs())
    if (p.name == name) return p;
  throw std::runtime_error("no program " + name);
}

Recording record(const Step& step) {
  Recording recording = record_step(step.state, step.run, {.stacks = false});
  EXPECT_EQ(recording.failure, "");
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
  return recording;
}

Replayer replayer_of(const Recording& recording) {
  auto replayer = Replayer::from_memory(recording.doc, {recording.data.begin(), recording.data.end()});
  if (!replayer) throw std::runtime_error(replayer.error().text());
  return std::move(replayer).value();
}

void Gradients::collect(std::int32_t op, const std::vector<at::Tensor>& outputs) {
  const OpRow& row = doc_.ops[static_cast<std::size_t>(op)];
  if (row.phase == Phase::optimizer) return;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::int32_t index = row.first_output + static_cast<std::int32_t>(k);
    const TensorRow& tensor = doc_.tensors[static_cast<std::size_t>(index)];
    if (tensor.slot != kNone && outputs[k].defined() && !outputs[k].is_complex())
      last_[tensor.slot] = {index, outputs[k].to(at::kDouble, false, true)};
  }
}

std::vector<at::Tensor> Gradients::get() const {
  std::vector<at::Tensor> gradients;
  for (const std::int32_t index : doc_.gradients) {
    gradients.emplace_back();
    if (index == kNone) continue;
    const TensorRow& row = doc_.tensors[static_cast<std::size_t>(index)];
    const auto found = last_.find(row.slot);
    if (found == last_.end()) continue;
    const TensorRow& seen = doc_.tensors[static_cast<std::size_t>(found->second.first)];
    if (seen.sizes == row.sizes && seen.strides == row.strides) gradients.back() = found->second.second;
  }
  return gradients;
}

Autocast::Autocast(at::ScalarType type)
    : was_on_(at::autocast::is_autocast_enabled(at::kCPU)), was_(at::autocast::get_autocast_dtype(at::kCPU)) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, type);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, was_on_);
  at::autocast::set_autocast_dtype(at::kCPU, was_);
}

}  // namespace nanquest::testing
