#include "probe/record/range_watch.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "probe/numerics/format.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/names.h"

namespace nanquest::record {
namespace {

void add(SeenRange& range, const StatsRow& stats) {
  range.amax = std::max(range.amax, stats.amax);
  range.elements += stats.count;
  range.zeros += stats.zero;
  range.subnormal += stats.subnormal;
  range.non_finite += stats.non_finite();
}

RangePlace place_of(const OpRecord& op, DType type) {
  return {op.traits, op.module, op.phase, type};
}

}  // namespace

std::string RangePlace::text() const {
  std::string text = op->name;
  if (module && !module->path.empty()) text += " in " + module->path;
  return text + " (" + std::string(phase_name(phase)) + ", " + std::string(dtype_name(type)) + ")";
}

std::size_t RangePlace::Hash::operator()(const RangePlace& p) const {
  const std::hash<const void*> hash;
  return hash(p.op) * 31 + hash(p.module) * 7 + static_cast<std::size_t>(p.phase) * 64 +
         static_cast<std::size_t>(p.type);
}

std::vector<SeenRange> ranges_of(const Step& step) {
  std::vector<SeenRange> seen;
  if (!step.watch) return seen;
  std::unordered_map<RangePlace, std::size_t, RangePlace::Hash> places;
  for (const OpRecord& op : step.ops) {
    if (!op.ended) continue;
    Reader reader(step.words.at(op.first_output));
    for (std::uint32_t i = 0; i < op.outputs + op.written; ++i) {
      const std::uint32_t token = step.words.place_of(reader);
      const Header header = reader.header();
      (void)reader.numbers(words_after(header));
      if (!header.slot_known()) continue;
      const std::int32_t row = step.watch->stats_at(token);
      const auto type = dtype_of(static_cast<at::ScalarType>(header.scalar_type));
      if (row == kNone || !type || !format_of(*type)) continue;
      const auto [found, fresh] = places.try_emplace(place_of(op, *type), seen.size());
      if (fresh) seen.push_back({found->first});
      add(seen[found->second], step.watch->stats()[static_cast<std::size_t>(row)]);
    }
  }
  return seen;
}

bool RangeWatch::wants(const OpRecord& op) const {
  return std::any_of(places_.begin(), places_.end(), [&](const RangePlace& place) {
    return place.op == op.traits && place.module == op.module && place.phase == op.phase;
  });
}

SeenRange& RangeWatch::of(const RangePlace& place) {
  for (SeenRange& range : seen_)
    if (range.place == place) return range;
  return seen_.emplace_back(SeenRange{place});
}

void RangeWatch::look(const OpRecord& op, const at::Tensor& tensor) {
  if (!tensor.defined() || !is_plain(tensor) || tensor.numel() == 0) return;
  const auto type = dtype_of(tensor.scalar_type());
  if (!type) return;
  const RangePlace place = place_of(op, *type);
  if (std::find(places_.begin(), places_.end(), place) == places_.end()) return;
  const at::NoGradGuard no_grad;
  if (later_.take(tensor, /*hash=*/false, static_cast<std::int32_t>(waiting_.size())))
    waiting_.push_back(place);
  else if (tensor.is_cpu())
    if (const auto stats = stats_of(tensor, /*hash=*/false)) add(of(place), *stats);
}

void RangeWatch::saw(const OpRecord& op, c10::ArrayRef<const c10::IValue> outputs,
                     const std::vector<at::Tensor>& written) {
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& tensor) { look(op, tensor); });
  if (outputs.empty())
    for (const at::Tensor& tensor : written) look(op, tensor);
}

const std::vector<SeenRange>& RangeWatch::seen() {
  if (!later_.empty())
    for (const auto& [row, stats] : later_.read()) add(of(waiting_[static_cast<std::size_t>(row)]), stats);
  waiting_.clear();
  return seen_;
}

}  // namespace nanquest::record
