/// environment: what a run must have around it to be the recorded one, and how this process differs.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest::trace {

/// While it lives: autograd and autocast are off, ATen uses the recorded number of threads (and the recorded
/// switch for deterministic algorithms), and says no warnings, which are the program's. Its end puts these
/// and the default CPU generator back. One at a time, on the calling thread.
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

/// "torch_version: recorded 2.15.0, here 2.11.0" for every entry that this process has otherwise; sorted by
/// name.
std::vector<std::string> environment_differences(const SnapshotDoc& doc);

}  // namespace nanquest::trace
