/// Room trainer/parallel: several processes that train one model together, each on its share of every batch.
///
///     Result<std::unique_ptr<Group>> group = join(launched());     // launch.h
///     config.ranks = *group ? group->get() : &nobody_else();       // LoopConfig
///
/// A Group is the communication between the processes (ranks). Every rank makes the same calls in the same
/// order; each call waits for all the others. If a rank ends silently, the others wait until the program that
/// started the ranks ends them: `mpirun` does. The room never prints, and does not know models, data or
/// steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// Used on one thread. Tensors are changed in place, and have the same number, shapes and types on every
/// rank.
class Group {
 public:
  virtual ~Group() = default;
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
  /// The same for the ranks on this machine.
  virtual std::int32_t local_rank() const = 0;
  virtual std::int32_t local_size() const = 0;

  /// Sums each tensor over all ranks; the result has the same bits on each. All of one floating-point type.
  virtual void sum(std::vector<at::Tensor> tensors) = 0;
  /// The maximum of each element over all ranks. NaN can't be compared: check for it before.
  virtual void largest(std::vector<at::Tensor> tensors) = 0;
  /// Copies the tensors of rank 0 to all ranks.
  virtual void take_first(std::vector<at::Tensor> tensors) = 0;
  /// The minimum over the ranks' values.
  virtual std::int64_t least(std::int64_t value) = 0;
  /// Returns when all ranks have called it.
  virtual void meet() = 0;
  /// Ends the other ranks too, wherever they run, with this exit code; if that is impossible it returns, and
  /// the program that started the ranks has to end them.
  virtual void end_all(int exit_code) = 0;

  bool alone() const { return size() == 1; }
  bool first() const { return rank() == 0; }
};

/// A single process: all calls return at once.
Group& nobody_else();

/// Ok if `own` is ok on every rank. Otherwise an error on every rank, that of the lowest rank with an error:
/// there with its message, on the others with the same code and no message, so that one process reports it.
Status agreed(Group& group, const Status& own);

/// The number of processors that this rank may use: those it is bound to or, if it is bound to none, its
/// share of the machine's. The same on all ranks, because the bits of sums depend on it.
int processors_of_rank(Group& group);

}  // namespace nanquest::trainer
