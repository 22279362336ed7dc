#include "replay/diff/rounding.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "replay/verdict/last_bit.h"

namespace nanquest::diff {
namespace {

constexpr double kTimesRounding = 8;
constexpr std::int64_t kTail = 0xF;  // mantissas that end in so many zero bits are taken for exact

double unit_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
    case at::kComplexDouble:
      return 0x1p-52;
    case at::kFloat:
    case at::kComplexFloat:
      return 0x1p-23;
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    case at::kFloat8_e4m3fn:
      return 0x1p-3;
    case at::kFloat8_e5m2:
      return 0x1p-2;
    default:
      return 0;
  }
}

at::ScalarType bits_of(const at::Tensor& t) {
  switch (t.element_size()) {
    case 8:
      return at::kLong;
    case 4:
      return at::kInt;
    case 2:
      return at::kShort;
    default:
      return at::kChar;
  }
}

double ratio(double part, double whole) {
  if (part == 0) return 0;
  return whole == 0 ? std::numeric_limits<double>::infinity() : part / whole;
}

RunOptions moved(const SnapshotDoc& doc, std::uint64_t seed, Precision precision) {
  RunOptions options;
  options.precision = precision;
  options.scan = false;
  for (std::size_t i = 0; i < doc.slots.size(); ++i)
    if (!doc.slots[i].data.empty() && precision == Precision::as_recorded)
      options.edit.slot_edit[static_cast<std::int32_t>(i)] = [seed, i](at::Tensor& t) {
        move_last_bits(t, seed + 2 * i);
      };
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    if ((doc.ops[i].flags & (kOpUninitialised | kOpViewOnly)) != 0) continue;
    options.edit.output_edit[static_cast<std::int32_t>(i)] = [seed, i](std::vector<at::Tensor>& written) {
      for (const at::Tensor& t : written) move_last_bits(t, seed + 2 * i + 1);
    };
  }
  return options;
}

}  // namespace

void Apart::at_least(const Apart& other) {
  whole = std::max(whole, other.whole);
  most = std::max(most, other.most);
  kind = kind || other.kind;
}

Apart apart(const at::Tensor& a, const at::Tensor& b) {
  Apart result;
  if (!a.defined() || !b.defined() || a.sizes() != b.sizes()) {
    result.kind = a.defined() || b.defined();
    return result;
  }
  const TensorDifference d = tensor_difference(a, b);
  if (d.different == 0) return result;
  if (!a.is_floating_point() && !a.is_complex() && !b.is_floating_point() && !b.is_complex())
    return {static_cast<double>(d.different) / static_cast<double>(d.count), 1, false};
  result.kind = d.non_finite_recorded != d.non_finite_other;
  result.whole = ratio(std::sqrt(d.squares_apart), std::sqrt(d.squares_recorded));
  result.most = ratio(d.max_abs, d.amax_recorded);
  return result;
}

void move_last_bits(const at::Tensor& t, std::uint64_t seed) {
  if (!t.defined() || t.numel() == 0) return;
  try {
    if (t.is_complex()) return move_last_bits(at::view_as_real(t), seed);
    if (!t.is_floating_point()) return;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(next_random(seed));
    at::Tensor bits = t.view(bits_of(t));
    at::Tensor by = at::empty(t.sizes(), bits.options()).random_(0, 2, generator).mul_(2).sub_(1);
    by.mul_(bits.bitwise_and(kTail).ne_(0)).mul_(at::isfinite(t));
    bits.add_(by);
  } catch (const std::exception&) {  // memory that is used twice (expanded), or a format without integers
  }
}

Rounding::Rounding(const Replayer& replayer, int times, const std::vector<Place>& wanted, Precision precision)
    : wanted_(wanted.size()) {
  const SnapshotDoc& doc = replayer.doc();
  RunOptions same;
  same.precision = precision;
  same.scan = false;
  std::vector<OpPair> pairs;
  for (const OpId op : ids_of<OpRow>(doc))
    if (get(doc, op).written_count > 0 && (get(doc, op).flags & kOpUninitialised) == 0)
      pairs.push_back({op, op});
  for (int i = 0; i < times; ++i) {
    std::uint64_t seed = static_cast<std::uint64_t>(i) + 1;
    const RunOptions other = moved(doc, next_random(seed), precision);
    const auto add = [&](const OpPair& pair, const std::vector<at::Tensor>& a,
                         const std::vector<at::Tensor>& b) {
      for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k)
        if (const Apart found = apart(a[k], b[k]); found.any())
          limits_[{pair.a.row(), static_cast<std::int32_t>(k)}].at_least(found);
    };
    const LockstepResult runs = lockstep({&replayer, &same, wanted}, {&replayer, &other, wanted}, pairs, add);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted_[k].at_least(apart(runs.wanted_a[k], runs.wanted_b[k]));
  }
}

Apart Rounding::limit(const WrittenPlace& place) const {
  const auto found = limits_.find(place);
  return found == limits_.end() ? Apart{} : found->second;
}

bool beyond(const Apart& found, const Apart& limit, at::ScalarType a, at::ScalarType b) {
  if (found.kind) return !limit.kind;
  const double least = 2 * std::max(unit_of(a), unit_of(b));
  return found.whole > std::max(least, kTimesRounding * limit.whole) ||
         found.most > std::max(least, kTimesRounding * limit.most);
}

}  // namespace nanquest::diff
