#include <torch/version.h>

#include "probe/snapshot/version.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {

std::string version_text() {
  return "nanquest-replay " NANQUEST_VERSION "\nLibTorch " TORCH_VERSION "\n" + file_versions();
}

}  // namespace nanquest::cli
