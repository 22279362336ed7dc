#include <hdf5.h>
#include <torch/version.h>

#include <cstdio>

#include "probe/snapshot/schema.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {

std::string version_text() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  char text[256];
  std::snprintf(text, sizeof text, "nanquest-replay %s\nLibTorch %s\nHDF5 %u.%u.%u\nfile format %d.%d",
                NANQUEST_VERSION, TORCH_VERSION, major, minor, release, kFormatMajor, kFormatMinor);
  return text;
}

}  // namespace nanquest::cli
