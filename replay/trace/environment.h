/// environment: the settings that a run needs in order to equal the recorded one, and how this process
/// differs.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest::trace {

/// While it exists: autograd and autocast are off, ATen uses the recorded number of threads (and the recorded
/// switch for deterministic algorithms), and prints no warnings, which are the program's. Its end restores
/// these and the default CPU generator. One at a time, on the calling thread.
class RunScope {
 public:
  explicit RunScope(const SnapshotDoc& doc);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  struct Silent : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };

  Silent silent_;
  c10::WarningUtils::WarningHandlerGuard no_warnings_{&silent_};
  at::NoGradGuard no_grad_;
  c10::impl::ExcludeDispatchKeyGuard no_autocast_;
  at::Tensor generator_;
  int threads_ = 0;
  bool deterministic_ = false, warn_only_ = false;
};

/// "torch_version: recorded 2.15.0, here 2.11.0" for every entry that differs in this process; sorted by
/// name.
std::vector<std::string> environment_differences(const SnapshotDoc& doc);

/// Whether a CPU may round otherwise here than where the step was recorded: another processor, other
/// instructions, another PyTorch.
bool has_other_kernels(const SnapshotDoc& doc);

}  // namespace nanquest::trace
