/// A Group over a process group of LibTorch's (c10d), however it was made: what is said by it are operators,
/// which the probe has on record and `nanquest-replay ranks` does again.
#pragma once

#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/parallel/group.h"

namespace nanquest::trainer {

struct ProcessGroupOptions {
  std::int32_t local_rank = 0, local_size = 1;
  std::function<void(int)> end_all = {};  ///< Group::end_all; empty = can't be done
  std::function<void()> leave = {};       ///< called at the end, after the group's own handle is gone
};

/// `group`: its backends know the CPU and the device that tensors will be on. Calls throw std::runtime_error
/// where the other ranks can't be reached.
std::unique_ptr<Group> group_of(c10::intrusive_ptr<c10d::ProcessGroup> group, ProcessGroupOptions options);

}  // namespace nanquest::trainer
