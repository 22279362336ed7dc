// Threads that have nothing to do sleep. By default OpenMP's spin: a step is thousands of short operations,
// and while other programs use the processors, spinning took nine of ten seconds of a diagnosis. OpenMP reads
// the setting when it is loaded. So the program starts itself again with the setting, before any of its
// libraries has begun to work.
#include <unistd.h>

#include <cstring>

namespace {

constexpr const char kSleep[] = "OMP_WAIT_POLICY=passive";
/// Whoever has set one of these has decided.
constexpr const char* kDecided[] = {"OMP_WAIT_POLICY=", "GOMP_SPINCOUNT=", "KMP_BLOCKTIME="};

/// Nothing of the C library is ready here but its system calls.
void sleep_when_idle(int, char** argv, char** environment) {
  std::size_t count = 0;
  for (; environment[count]; ++count)
    for (const char* name : kDecided)
      if (std::strncmp(environment[count], name, std::strlen(name)) == 0) return;
  constexpr std::size_t kMost = 4096;
  if (count + 2 > kMost) return;
  static const char* with_setting[kMost];
  for (std::size_t i = 0; i < count; ++i) with_setting[i] = environment[i];
  with_setting[count] = kSleep;
  execve("/proc/self/exe", argv, const_cast<char**>(with_setting));  // where it fails, threads spin
}

}  // namespace

__attribute__((section(".preinit_array"),
               used)) void (*const nanquest_sleep_when_idle)(int, char**, char**) = &sleep_when_idle;
