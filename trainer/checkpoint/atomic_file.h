/// Room trainer/checkpoint: files that are either complete or not there.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Takes the bytes of a file under construction, in order.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(const void* data, std::size_t size) = 0;
};

/// Writes `path` through a temporary file beside it: written, fsynced, renamed over `path`, folder fsynced. A
/// process killed at any moment leaves the old file or the new one; a failure leaves the old one and no
/// temporary. Error `io` names the path.
Status write_atomically(const std::string& path, const std::function<Status(ByteSink&)>& fill);

}  // namespace nanquest::trainer
