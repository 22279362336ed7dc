#include <hdf5.h>
#include <torch/version.h>

#include "probe/snapshot/schema.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {

std::string version_text() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return std::string("nanquest-replay ") + NANQUEST_VERSION + "\nLibTorch " + TORCH_VERSION + "\nHDF5 " +
         std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release) + "\nfile format " +
         std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor);
}

}  // namespace nanquest::cli
