/// tape_hooks: what several parts want to do at operations of one run, in the order in which they asked.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest {

class TapeHooks {
 public:
  /// What an operation wrote, by the entries of its written range.
  using Written = std::vector<at::Tensor>;
  using Action = std::function<void(Written&)>;
  using Look = std::function<void(std::vector<c10::IValue>&)>;

  /// `action` sees, and may change in place, what `op` wrote. It may throw: that ends the run.
  void after(std::int32_t op, Action action);
  /// `look` sees the arguments of `op` before it runs, and may exchange them.
  void before(std::int32_t op, Look look);

  /// Makes `options` those of a run with all of them, which this must outlive.
  void put_into(RunOptions& options) const;

 private:
  std::map<std::int32_t, std::vector<Action>> after_;
  std::map<std::int32_t, std::vector<Look>> before_;
};

/// All of the memory that `part` is in, as a 1-D tensor of its type. Shares it.
at::Tensor whole_memory(const at::Tensor& part);

}  // namespace nanquest
