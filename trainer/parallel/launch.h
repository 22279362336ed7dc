/// What started this process: one of several ranks, or this one alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/parallel/group.h"

namespace nanquest::trainer {

struct Launched {
  enum class By : std::uint8_t { nobody, mpirun, torchrun } by = By::nobody;
  std::int32_t rank = 0, size = 1;
};

/// Read from the environment that launchers leave; a single process is By::nobody.
Launched launched();

/// A process group of LibTorch's that this process is in already, by its name; "" for none. `join` takes it.
void offer_process_group(const std::string& name);

/// The group of the ranks that were started together; `nobody_else` (not owned by the result: null) for one
/// process. `unsupported` where this build can't join them, saying what to do.
Result<std::unique_ptr<Group>> join(const Launched& by);

}  // namespace nanquest::trainer
