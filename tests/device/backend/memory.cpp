#include "tests/device/backend/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nqdev {
namespace {

constexpr std::size_t kPage = 4096;

struct Range {
  char* base = nullptr;
  std::size_t used = 0;
};

struct sigaction before;

/// The crash with a name, then what would have happened anyway.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (device_of(info->si_addr) >= 0) {
    static constexpr char kText[] = "nqdev: the host touched device memory\n";
    (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  } else if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction) {
    return before.sa_sigaction(signal, info, context);
  }
  ::signal(signal, SIG_DFL);
  raise(signal);
}

class Ranges {
 public:
  Ranges() {
    for (Range& range : all) {
      void* at = mmap(nullptr, kDeviceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) std::abort();
      range.base = static_cast<char*>(at);
    }
    struct sigaction action = {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
  }
  std::array<Range, kDevices> all;
  int open = 0;
};

Ranges& ranges() {
  // Never destroyed: tensors may outlive every static.
  static auto* made = new Ranges;
  return *made;
}

void protect(int how) {
  for (const Range& range : ranges().all) {
    const std::size_t bytes = (range.used + kPage - 1) / kPage * kPage;
    if (bytes && mprotect(range.base, bytes, how) != 0) std::abort();
  }
}

}  // namespace

void* more_memory(int device, std::size_t bytes) {
  Range& range = ranges().all[static_cast<std::size_t>(device)];
  bytes = (bytes + 511) / 512 * 512;
  if (bytes > kDeviceBytes - range.used) return nullptr;
  char* const at = range.base + range.used;
  range.used += bytes;
  if (ranges().open) protect(PROT_READ | PROT_WRITE);
  return at;
}

int device_of(const void* address) {
  for (int d = 0; d < kDevices; ++d) {
    const char* const base = ranges().all[static_cast<std::size_t>(d)].base;
    if (address >= base && address < base + kDeviceBytes) return d;
  }
  return -1;
}

Unlocked::Unlocked() {
  if (ranges().open++ == 0) protect(PROT_READ | PROT_WRITE);
}

Unlocked::~Unlocked() {
  if (--ranges().open == 0) protect(PROT_NONE);
}

}  // namespace nqdev
