#include "probe/step/tensor_pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>

#include "probe/tensor/parallel.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

constexpr std::size_t kChunkBytes = 128 * 1024;  // fits the second-level cache of one core

/// The type of the loop that reads a tensor, complex numbers as pairs of reals; nothing if there is none.
std::optional<DType> loop_type(const at::Tensor& tensor) {
  const std::optional<DType> type = dtype_of(c10::toRealValueType(tensor.scalar_type()));
  return type && has_gate_loop(*type) ? type : std::nullopt;
}

}  // namespace

void TensorPass::begin() {
  chunks_.clear();
  other_.clear();
  stats_.clear();
  numbers_.clear();
  on_device_.clear();
  uncounted_.clear();
  bytes_ = 0;
}

std::size_t TensorPass::read(const at::Tensor& number, bool in_word) {
  const at::NoGradGuard no_grad;
  const at::Tensor one = number.numel() == 1 ? number.detach() : number.detach().sum();
  numbers_.push_back({one, one.is_cpu() ? one.item().toDouble() : 0, in_word});
  return numbers_.size() - 1;
}

void TensorPass::add(const at::Tensor& tensor) {
  const auto index = static_cast<std::uint32_t>(stats_.size());
  stats_.emplace_back();
  if (!tensor.defined() || tensor.numel() == 0) return;
  if (!tensor.is_floating_point() && !tensor.is_complex()) return;
  const std::optional<DType> type = loop_type(tensor);
  if (type && tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense() &&
      !tensor.is_neg())
    add_chunks(index, tensor, *type, tensor.is_complex());
  else
    other_.emplace_back(index, &tensor);
}

void TensorPass::add_chunks(std::uint32_t index, const at::Tensor& tensor, DType type, bool complex) {
  const std::size_t count = static_cast<std::size_t>(tensor.numel()) * (complex ? 2 : 1);
  const std::size_t size = dtype_size(type);
  const std::size_t step = kChunkBytes / size;
  // Written only if `run` scales, and then the caller passed it to be written.
  char* data = static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()));
  for (std::size_t i = 0; i < count; i += step)
    chunks_.push_back({data + i * size, std::min(step, count - i), index, type, {}});
  bytes_ += count * size;
}

void TensorPass::start(double factor) {
  run_chunks(factor);
  const bool elsewhere = std::any_of(numbers_.begin(), numbers_.end(),
                                     [](const Number& number) { return !number.tensor.is_cpu(); });
  if (!other_.empty() || elsewhere) start_other(factor);
}

void TensorPass::run(double factor) {
  start(factor);
  finish();
  recount();
}

void TensorPass::run_chunks(double factor) {
  const bool store = factor != 1;
  const auto work = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      Chunk& c = chunks_[static_cast<std::size_t>(i)];
      c.stats = store ? scale_and_measure(c.type, c.data, c.count, factor) : measure(c.type, c.data, c.count);
    }
  };
  const auto chunks = static_cast<std::int64_t>(chunks_.size());
  if (bytes_ >= kWorthWaking)
    parallel_ranges(chunks, 1, work);
  else
    work(0, chunks);
  for (const Chunk& c : chunks_) {
    LoopStats& s = stats_[c.tensor];
    s.sum_squares += c.stats.sum_squares;
    s.amax = std::max(s.amax, c.stats.amax);
    s.non_finite += c.stats.non_finite;
  }
}

void add_non_finite(TensorPass& pass, const char* kind,
                    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                    std::vector<std::string>& names) {
  pass.begin();
  for (const auto& [name, tensor] : tensors) pass.add(tensor);
  pass.run(1);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (pass.stats(i).non_finite > 0) names.push_back(kind + tensors[i].first);
}

std::string first_non_finite(TensorPass& pass,
                             const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<std::string> names;
  add_non_finite(pass, "", tensors, names);
  return names.empty() ? "" : names.front();
}

}  // namespace nanquest
