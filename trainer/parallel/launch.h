/// How this process was started: as one of several ranks, or alone.
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

/// Name of a LibTorch process group that this process already belongs to; "" for none. `join` uses it.
void offer_process_group(const std::string& name);

/// The group of the ranks that were started together; null for one process (use `nobody_else`).
/// `unsupported`, with advice, if this build can't join them.
Result<std::unique_ptr<Group>> join(const Launched& by);

}  // namespace nanquest::trainer
