/// Room trainer/parallel: several processes that train one model together, each on its share of every batch.
///
///     Result<std::unique_ptr<Group>> group = join(launched());        // launch.h: by what started this
///     process config.ranks = *group ? group->get() : &nobody_else();          // LoopConfig
///
/// A Group is what the processes (ranks) say to each other. Every rank calls the same in the same order; each
/// call waits for all the others. One that ends without a word is waited for until who started the ranks ends
/// them: `mpirun` does. Never: prints, knows of models, data or steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// Used on one thread. Tensors are changed in place, and are of the same number, shapes and types on every
/// rank.
class Group {
 public:
  virtual ~Group() = default;
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
  /// The same of the ranks on this machine.
  virtual std::int32_t local_rank() const = 0;
  virtual std::int32_t local_size() const = 0;

  /// Adds up each tensor over all ranks; the result has the same bits on each. Of one floating-point type.
  virtual void sum(std::vector<at::Tensor> tensors) = 0;
  /// The largest of each element over all ranks. NaN is no number to compare: look for it before.
  virtual void largest(std::vector<at::Tensor> tensors) = 0;
  /// Those of rank 0, for all.
  virtual void take_first(std::vector<at::Tensor> tensors) = 0;
  /// The least of what the ranks give.
  virtual std::int64_t least(std::int64_t value) = 0;
  /// Returns when all ranks have come here.
  virtual void meet() = 0;
  /// Ends the other ranks too, wherever they are, with this exit code; where that can't be done it returns,
  /// and who started the ranks has to.
  virtual void end_all(int exit_code) = 0;

  bool alone() const { return size() == 1; }
  bool first() const { return rank() == 0; }
};

/// A single process: all calls return at once.
Group& nobody_else();

/// Ok if `own` is on every rank. Otherwise an error on every rank, of the lowest that has one: there with its
/// words, on the others of the same code and without any, so that one process tells it.
Status agreed(Group& group, const Status& own);

/// The processors that this rank may keep busy: those it is bound to or, where it is bound to none, its part
/// of the machine's; the same number on all ranks, as the bits of sums depend on it.
int processors_of_rank(Group& group);

}  // namespace nanquest::trainer
