#include "replay/trace/compare.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/lockstep.h"
#include "replay/trace/replayer_state.h"

namespace nanquest {
namespace {

/// Bit patterns of a binary float as integers that rise with the value, so that neighbours differ by one.
template <class Bits>
std::int64_t ordered(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  const auto value = static_cast<Signed>(bits);
  if (value >= 0) return static_cast<std::int64_t>(value);
  return static_cast<std::int64_t>(std::numeric_limits<Signed>::min()) - static_cast<std::int64_t>(value);
}

template <class Bits>
double max_distance(const at::Tensor& a, const at::Tensor& b, const double* left, const double* right) {
  const auto* x = static_cast<const Bits*>(a.const_data_ptr());
  const auto* y = static_cast<const Bits*>(b.const_data_ptr());
  double largest = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (!std::isfinite(left[i]) || !std::isfinite(right[i])) continue;
    // Unsigned: neighbours in fp64 are one apart, which two doubles of that size would not show.
    const std::int64_t left_order = ordered(x[i]), right_order = ordered(y[i]);
    const auto [low, high] = std::minmax(left_order, right_order);
    largest = std::max(
        largest, static_cast<double>(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)));
  }
  return largest;
}

double max_ulp(const at::Tensor& recorded, const at::Tensor& other, const double* left, const double* right) {
  if (!recorded.is_floating_point()) return 0;
  const at::Tensor a = recorded.contiguous();
  const at::Tensor b = other.to(recorded.scalar_type()).contiguous();
  switch (recorded.element_size()) {
    case 8:
      return max_distance<std::uint64_t>(a, b, left, right);
    case 4:
      return max_distance<std::uint32_t>(a, b, left, right);
    case 2:
      return max_distance<std::uint16_t>(a, b, left, right);
    default:
      return max_distance<std::uint8_t>(a, b, left, right);
  }
}

/// Adds one pair of elements.
void add_pair(std::int64_t index, double a, double b, TensorDifference& d, bool& mixed) {
  ++d.count;
  const bool finite_a = std::isfinite(a), finite_b = std::isfinite(b);
  d.non_finite_recorded += !finite_a;
  d.non_finite_other += !finite_b;
  if (finite_a && finite_b) {
    d.squares_recorded += a * a;
    d.squares_apart += (b - a) * (b - a);
    d.amax_recorded = std::max(d.amax_recorded, std::abs(a));
  }
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  ++d.different;
  if (!finite_a || !finite_b) {  // larger than any distance
    if (!mixed) d.worst = index;
    mixed = true;
    return;
  }
  const double distance = std::abs(b - a);
  if (distance > d.max_abs) {
    d.max_abs = distance;
    if (!mixed) d.worst = index;
  }
  if (b != 0) d.max_rel = std::max(d.max_rel, distance / std::abs(b));
}

/// Integers are compared without converting to double, which would make neighbours above 2^53 equal.
TensorDifference integer_difference(const at::Tensor& recorded, const at::Tensor& other) {
  TensorDifference d;
  const at::Tensor a = recorded.to(at::kLong).contiguous(), b = other.to(at::kLong).contiguous();
  const auto* x = a.const_data_ptr<std::int64_t>();
  const auto* y = b.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    ++d.count;
    if (x[i] == y[i]) continue;
    ++d.different;
    const double distance = std::max(1.0, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    if (distance > d.max_abs) {
      d.max_abs = distance;
      d.worst = i;
    }
    if (y[i] != 0) d.max_rel = std::max(d.max_rel, distance / std::abs(static_cast<double>(y[i])));
  }
  return d;
}

}  // namespace

TensorDifference tensor_difference(const at::Tensor& recorded, const at::Tensor& other) {
  if (!recorded.defined() || !other.defined() || recorded.sizes() != other.sizes()) return {};
  if (recorded.is_complex())
    return tensor_difference(as_reals(recorded),
                             as_reals(other.is_complex() ? other : other.to(recorded.scalar_type())));
  if (!recorded.is_floating_point() && !other.is_floating_point()) return integer_difference(recorded, other);
  TensorDifference d;
  const at::Tensor left = recorded.to(at::kDouble).contiguous(), right = other.to(at::kDouble).contiguous();
  const auto* a = left.const_data_ptr<double>();
  const auto* b = right.const_data_ptr<double>();
  bool mixed = false;
  for (std::int64_t i = 0; i < left.numel(); ++i) add_pair(i, a[i], b[i], d, mixed);
  if (d.different > 0) d.max_ulp = max_ulp(recorded, other, a, b);
  return d;
}

Result<CompareResult> compare(const Replayer& replayer, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const SnapshotDoc& doc = replayer.doc();
  const Replayer::Impl& impl = replayer.impl();
  CompareResult result;
  try {
    RunOptions same;
    same.scan = false;
    same.stop_after = options.stop_after;
    std::vector<OpPair> pairs;
    for (const OpId op : trace::ops_to_run(doc, options)) pairs.push_back({op, op});
    const auto add = [&](const OpPair& pair, const std::vector<at::Tensor>& a,
                         const std::vector<at::Tensor>& b) {
      const OpId op = pair.a;
      const auto& rows = impl.plan().ops[op].written;
      const bool garbage = (get(doc, op).flags & kOpUninitialised) != 0;
      for (std::size_t i = 0; !garbage && i < std::min(a.size(), b.size()); ++i) {
        if (!a[i].defined() || !b[i].defined() || a[i].sizes() != b[i].sizes()) continue;
        const TensorDifference d = tensor_difference(a[i], b[i]);
        result.rows.push_back({op.row(), rows[i].row(), d});
        if (d.different > 0 && result.first_difference == kNone) result.first_difference = op.row();
        if ((d.non_finite_recorded > 0) != (d.non_finite_other > 0) &&
            result.first_finiteness_change == kNone)
          result.first_finiteness_change = op.row();
      }
    };
    result.other = lockstep({&replayer, &same}, {&replayer, &options}, std::move(pairs), add).b;
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, std::string("the runs can't be compared: ") + e.what(),
                 "nanquest-replay info shows what the snapshot holds"};
  }
  result.other.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace nanquest
