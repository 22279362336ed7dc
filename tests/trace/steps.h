/// Small recorded steps, written by hand.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "probe/trace/graph.h"

namespace nanquest::testing {

/// A view of a slot, and its bad values.
struct View {
  SlotId slot;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
  BadCounts bad = {};
  DType dtype = DType::float32;
};

/// Builds a doc op by op.
class Steps {
 public:
  SnapshotDoc doc;

  SlotId slot(std::int64_t elements, SlotOrigin origin = SlotOrigin::produced, const std::string& name = "");
  /// An op with these tensor arguments (each an argument of its own) that writes those.
  OpId op(const std::string& name, const std::vector<View>& arguments, const std::vector<View>& writes,
          std::uint32_t flags = 0, Phase phase = Phase::forward);
  /// The same, and its result becomes the loss.
  OpId loss(const std::string& name, const std::vector<View>& arguments, const View& result);
  TensorId row(const View& view);

  OpRow& operator[](OpId id) { return get(doc, id); }
};

/// A whole slot of `n` elements, as one dimension.
View whole(SlotId slot, std::int64_t n, BadCounts bad = {});
/// Elements [from, to) of a slot.
View part(SlotId slot, std::int64_t from, std::int64_t to, BadCounts bad = {});

inline constexpr BadCounts kOneNan{1, 0, 0}, kOneInf{0, 1, 0};

std::vector<std::int32_t> numbers(std::initializer_list<OpId> ops);

}  // namespace nanquest::testing
