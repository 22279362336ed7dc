/// made_up: how the values that ranks hold make up the value that one process has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replay/diff/rounding.h"

namespace nanquest::diff {

/// `copies`: each rank has the value. `along`: each has a part along a dimension. `in_turn`: of the samples
/// (dimension 0) each has every n-th. `sum`: they have to be added. `norm`: they are norms of parts.
/// `nothing`: none of these. `other_shapes`: their shapes fit none of these, so nothing was compared.
enum class MadeUp : std::uint8_t { nothing, other_shapes, copies, along, in_turn, sum, norm };

struct Made {
  MadeUp how = MadeUp::other_shapes;
  std::int64_t dim = 0;  ///< of `along`
  Apart apart;           ///< of `nothing`: of the nearest way

  bool fits() const { return how != MadeUp::nothing && how != MadeUp::other_shapes; }
};

/// What may be tried.
struct Ways {
  bool sums = false;  ///< added values; norms too
  bool scaled =
      false;  ///< or n times, or an n-th of it, for n ranks: losses are means over each rank's batch
  std::int64_t samples = 0;  ///< of each rank, for `in_turn`; 0: not known
};

/// The first way in which the parts make up the whole; `within`: whether this distance is rounding. All are
/// CPU tensors.
Made made_up(const at::Tensor& whole, const std::vector<at::Tensor>& parts, const Ways& ways,
             const std::function<bool(const Apart&)>& within);

/// "each rank has it", "each rank has a part of dimension 1".
std::string in_words(const Made& made);

}  // namespace nanquest::diff
