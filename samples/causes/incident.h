/// Shared by the programs here: records one step, names the culprit, writes the snapshot.
#pragma once

#include <ATen/ATen.h>

#include <cstdio>
#include <functional>
#include <string>

#include "probe/record/record.h"
#include "probe/observe/module_scope.h"
#include "probe/trace/culprit.h"

namespace samples {

/// Records `step` and writes the snapshot to argv[1]. Exit code 1 if harm was found, 0 if not, 2 or 3 for bad
/// usage or a path that can't be written.
inline int record_incident(int argc, char** argv, const nanquest::StepState& state,
                           const std::function<at::Tensor()>& step) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SNAPSHOT.h5\n", argv[0]);
    return 2;
  }
  nanquest::Recording recording = nanquest::record_step(state, step);
  const bool harmful = nanquest::find_culprit(recording.doc);
  if (const nanquest::Status status = nanquest::write_snapshot(recording, argv[1]); !status) {
    std::fprintf(stderr, "%s\n", status.error().text().c_str());
    return nanquest::exit_code(status.error().code);
  }
  std::printf("%s\nnanquest-replay %s\n", nanquest::describe_culprit(recording.doc).c_str(), argv[1]);
  return harmful ? 1 : 0;
}

/// A trainable fp32 tensor.
inline at::Tensor parameter(const at::Tensor& values) {
  return values.clone().set_requires_grad(true);
}

}  // namespace samples
