#include "probe/step/memory_use.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "probe/tensor/torch_versions.h"

namespace nanquest {

double resident_bytes() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"),
                                                             std::fclose);
  long long all = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &all, &resident) != 2)
    return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double device_peak_bytes(const std::vector<c10::Device>& devices) noexcept {
  double peak = std::numeric_limits<double>::quiet_NaN();
  for (const c10::Device device : devices)
    peak = std::fmax(peak, peak_memory_of(device));  // a NaN gives way to a number
  return peak;
}

}  // namespace nanquest
