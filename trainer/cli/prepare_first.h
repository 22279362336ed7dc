/// Lines of JSON in place of prepared data: nanquest prepare is called for them.
#pragma once

#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Why nothing was prepared: `error`, or only the exit code if the called command has printed its own
/// message.
struct NotPrepared {
  int exit_code = 0;
  bool told = false;
  Error error = {};
};

/// If `path` is a file, runs `nanquest prepare` on it for the model in `folder`, into a folder beside it, and
/// sets `path` to that folder; the command's output goes to stderr. Does nothing if `path` is no file. If
/// another rank runs the command (not `here`), only `path` is changed.
[[nodiscard]] NotPrepared prepare_first(const std::string& folder, std::string& path, bool here = true);

}  // namespace nanquest::trainer
