/// collective_call: what one recorded collective does, from its name and arguments.
///
///     if (const auto call = collective_call(doc, op))        // "c10d::_allgather_base_": Pattern::gather
///       for (const auto& item : call->inputs) use(item);     // what this rank gives
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/trace/ids.h"

namespace nanquest {

/// The results for inputs x_r of the ranks r of a group of n.
enum class Pattern : std::uint8_t {
  reduce,          ///< each rank gets the reduction of all x_r
  gather,          ///< each rank gets x_0 … x_{n-1}, one after another
  reduce_scatter,  ///< rank k gets the k-th of n equal parts of the reduction
  broadcast,       ///< each rank gets x_root
};

enum class Reduction : std::uint8_t { none, sum, average, product, min, max, band, bor, bxor, unknown };

/// One or more tensors whose elements follow one another: the list of a gather counts as one.
using FlatRows = std::vector<TensorId>;

struct CollectiveCall {
  Pattern pattern = Pattern::reduce;
  Reduction reduction = Reduction::none;  ///< `unknown`: older files don't have it
  std::string group;                      ///< name of the process group; "": the file doesn't have it
  std::vector<std::int32_t>
      ranks;              ///< the group's members as global ranks; empty: the file doesn't have them
  std::int64_t size = 0;  ///< size of the group according to an argument; 0: no argument has it
  std::int64_t root = 0;  ///< of a broadcast: place in the group, or global rank if `ranks` is empty
  std::vector<FlatRows> inputs, outputs;  ///< equal numbers of both; outputs are written rows
  std::vector<std::int32_t> written;  ///< entry of the op's written range, for each row of `outputs` in turn
};

/// Nothing if `op` is no collective, has none of these patterns (sends, all-to-all, barriers), or its tables
/// are invalid.
std::optional<CollectiveCall> collective_call(const SnapshotDoc& doc, OpId op);

/// "sum", "average".
std::string_view name_of(Reduction reduction);

/// Names of the process groups that the doc's collectives use, each once.
std::vector<std::string> process_groups_in(const SnapshotDoc& doc);

}  // namespace nanquest
