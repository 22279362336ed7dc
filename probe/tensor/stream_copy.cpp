#include "probe/tensor/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace nanquest {

#if defined(__SSE2__)
namespace {

constexpr std::size_t kLine = 64, kPage = 4096, kPages = 4;

void stream_line(char* to, const char* from) {
  auto* out = reinterpret_cast<__m128i*>(to);
  const auto* in = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
  const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
  _mm_stream_si128(out, a);
  _mm_stream_si128(out + 1, b);
  _mm_stream_si128(out + 2, c);
  _mm_stream_si128(out + 3, d);
}

}  // namespace

void stream_copy(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  std::memcpy(out, in, head);
  // The hardware prefetches within a page; with four pages at once it prefetches four times as much.
  std::size_t done = head;
  for (; bytes - done >= kPages * kPage; done += kPages * kPage)
    for (std::size_t line = done; line < done + kPage; line += kLine)
      for (std::size_t page = 0; page < kPages; ++page)
        stream_line(out + line + page * kPage, in + line + page * kPage);
  std::memcpy(out + done, in + done, bytes - done);
  _mm_sfence();  // other threads may read the written bytes after this returns
}
#else
void stream_copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace nanquest
