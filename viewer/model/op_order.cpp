#include "viewer/model/op_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace nanquest::viewer {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kAbove = std::numeric_limits<double>::infinity();

struct Key {
  double number = kMissing;
  std::string text;
  OpId op;
  bool missing() const { return std::isnan(number) && text.empty(); }
};

double largest(const ValueRange& range) {
  return range.none_finite() ? kAbove : range.has_amax ? range.amax : kMissing;
}

double largest(const std::optional<ReplayedValues>& values) {
  return !values ? kMissing : values->non_finite() > 0 ? kAbove : values->amax;
}

double distance(const std::optional<ReplayedValues>& recorded, const std::optional<ReplayedValues>& fp64) {
  if (!recorded || !fp64) return kMissing;
  return changes_finiteness(*recorded, *fp64) ? kAbove : fp64->relative();
}

Key key_of(const OpenIncident& incident, TraceColumn by, OpId op) {
  const TraceView& trace = incident.trace;
  const TraceLine line = by == TraceColumn::op || by == TraceColumn::mark ? TraceLine{} : trace.line(op);
  const auto again = [&](const ReplayedRun Replayed::*run) {
    return incident.replayed ? (*incident.replayed.*run).at(op) : std::nullopt;
  };
  switch (by) {
    case TraceColumn::mark:
      return {trace.mark(op) == OpMark::none ? kMissing : static_cast<double>(trace.mark(op)), "", op};
    case TraceColumn::name:
      return {kMissing, line.name, op};
    case TraceColumn::module:
      return {kMissing, line.module, op};
    case TraceColumn::phase:
      return {static_cast<double>(line.phase), "", op};
    case TraceColumn::formats:
      return {kMissing, line.read_formats + " > " + line.write_format, op};
    case TraceColumn::read:
      return {largest(line.read), "", op};
    case TraceColumn::written:
      return {largest(line.written), "", op};
    case TraceColumn::headroom:
      return {line.written.has_headroom ? line.written.headroom : kMissing, "", op};
    case TraceColumn::non_finite:
      return {line.written.non_finite() > 0 ? static_cast<double>(line.written.non_finite()) : kMissing, "",
              op};
    case TraceColumn::fp32:
      return {largest(again(&Replayed::fp32)), "", op};
    case TraceColumn::fp64:
      return {largest(again(&Replayed::fp64)), "", op};
    case TraceColumn::off:
      return {distance(again(&Replayed::recorded), again(&Replayed::fp64)), "", op};
    case TraceColumn::op:
    case TraceColumn::count:
      break;
  }
  return {static_cast<double>(op.row()), "", op};
}

}  // namespace

void sort_ops(const OpenIncident& incident, const OpOrder& order, std::vector<OpId>& ops) {
  std::ranges::sort(ops);
  if (order == OpOrder{}) return;
  std::vector<Key> keys;
  keys.reserve(ops.size());
  for (const OpId op : ops) keys.push_back(key_of(incident, order.by, op));
  std::ranges::stable_sort(keys, [&](const Key& a, const Key& b) {
    if (a.missing() || b.missing()) return !a.missing() && b.missing();
    const Key &low = order.largest_first ? b : a, &high = order.largest_first ? a : b;
    return std::isnan(low.number) ? low.text < high.text : low.number < high.number;
  });
  std::ranges::transform(keys, ops.begin(), &Key::op);
}

}  // namespace nanquest::viewer
