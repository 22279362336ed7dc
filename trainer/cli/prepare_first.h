/// Lines of JSON where prepared data is wanted: nanquest prepare is called for them.
#pragma once

#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Why nothing was prepared: `error`, or, where the called command has said so itself, only its exit code.
struct NotPrepared {
  int exit_code = 0;
  bool told = false;
  Error error = {};
};

/// If `path` is a file, runs `nanquest prepare` of it for the model in `folder`, into a folder beside it, and
/// makes `path` that folder; what the command says goes to stderr. Nothing where `path` is no file. Where
/// another rank runs the command (not `here`), `path` alone is changed.
[[nodiscard]] NotPrepared prepare_first(const std::string& folder, std::string& path, bool here = true);

}  // namespace nanquest::trainer
