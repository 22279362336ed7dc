#include "probe/numerics/implementation.h"

#include <cstdlib>
#include <string_view>

#if defined(NANQUEST_X86)
#include <cpuid.h>
#endif

namespace nanquest::detail {
namespace {

#if defined(NANQUEST_X86)
constexpr const Implementation* kAll[] = {&kBase, &kAvx2, &kAvx512};

std::size_t count_supported() {
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;  // unknown to clang's builtin
  if (!f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
             ? 3
             : 2;
}
#else
constexpr const Implementation* kAll[] = {&kBase};

std::size_t count_supported() {
  return 1;
}
#endif

}  // namespace

std::span<const Implementation* const> implementations() {
  static const std::size_t count = count_supported();
  return std::span(kAll, count);
}

const Implementation& implementation_named(const char* name) {
  for (const Implementation* one : implementations())
    if (name != nullptr && std::string_view(name) == one->name) return *one;
  return *implementations().back();
}

const Implementation& implementation() {
  static const Implementation& chosen = implementation_named(std::getenv("NANQUEST_SIMD"));
  return chosen;
}

}  // namespace nanquest::detail
