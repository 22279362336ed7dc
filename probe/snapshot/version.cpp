#include "probe/snapshot/version.h"

#include <hdf5.h>

#include "probe/snapshot/schema.h"

namespace nanquest {

std::string file_versions() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return "HDF5 " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release) +
         "\nfile format " + std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor);
}

void quiet_hdf5() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace nanquest
