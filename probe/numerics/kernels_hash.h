// The blocks of hash.h. Included only by kernels.h, once per instruction set; the rules at its top apply.
#pragma once

#include "probe/numerics/kernels_fetch.h"
#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

/// Products of the lower halves of two vectors' words.
[[gnu::always_inline]] inline VecU64 multiply_low_halves(VecU64 a, VecU64 b) {
#if defined(__AVX512F__)
  return (VecU64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (VecU64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (VecU64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffffU) * (b & 0xffffffffU);
#endif
}

/// Word j becomes word j ^ 1.
[[gnu::always_inline]] inline VecU64 swap_neighbours(VecU64 v) {
#if defined(__AVX512F__)
  return (VecU64)_mm512_shuffle_epi32((__m512i)v, _MM_PERM_BADC);
#elif defined(__AVX2__)
  return (VecU64)_mm256_shuffle_epi32((__m256i)v, 0x4e);
#elif defined(__SSE2__)
  return (VecU64)_mm_shuffle_epi32((__m128i)v, 0x4e);
#else
  VecU64 swapped;
  for (unsigned j = 0; j < kBytes / 8; ++j) swapped[j] = v[j ^ 1];
  return swapped;
#endif
}

/// The step between blocks: (acc ^ (acc >> 47) ^ key) * 0x9e3779b1.
[[gnu::always_inline]] inline VecU64 scramble_lanes(VecU64 acc, VecU64 key) {
  const VecU64 mixed = acc ^ (acc >> 47) ^ key;
  const VecU64 factor = VecU64{} + 0x9e3779b1U;
  return multiply_low_halves(mixed, factor) + (multiply_low_halves(mixed >> 32, factor) << 32);
}

/// One block; with `Fetch` it also prefetches as many lines: of all streams from `offset` on.
template <bool Fetch>
[[gnu::always_inline]] inline void hash_block(const char* p, const std::uint64_t* keys,
                                              const VecU64* scramble_keys, VecU64* acc,
                                              [[maybe_unused]] const LinesAhead& ahead,
                                              [[maybe_unused]] std::size_t offset) {
  VecU64 words[kParts] = {};
  for (int s = 0; s < 16; ++s, p += 64) {
    if constexpr (Fetch)
      if (s % 4 == 0) ahead.fetch<0, 4>(offset + s / 4 * kLine);
    for (int k = 0; k < kParts; ++k) {
      VecU64 word, key;
      load(word, p + k * kBytes);
      load(key, keys + 8 * s + k * (kBytes / 8));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
      for (int j = 0; j < kBytes / 8; ++j) word[j] = __builtin_bswap64(word[j]);
#endif
      const VecU64 keyed = word ^ key;
      acc[k] += multiply_low_halves(keyed, keyed >> 32);
      words[k] += word;
    }
  }
  for (int k = 0; k < kParts; ++k)
    acc[k] = scramble_lanes(acc[k] + swap_neighbours(words[k]), scramble_keys[k]);
}

void hash_blocks(const void* data, std::size_t blocks, const std::uint64_t* keys, std::uint64_t* lanes) {
  constexpr std::size_t block = 1024, piece = kScanBlock / block;
  const auto* p = static_cast<const char*>(data);
  VecU64 acc[kParts], scramble_keys[kParts];
  __builtin_memcpy(acc, lanes, sizeof acc);
  __builtin_memcpy(scramble_keys, keys + 136, sizeof scramble_keys);
  // The last piece prefetches nothing. It is the only one if a scan has just read the same bytes.
  for (const char* end = p + blocks * block; blocks > piece; blocks -= piece, p += kScanBlock) {
    const LinesAhead ahead({p, end});
    for (std::size_t i = 0; i < piece; ++i)
      hash_block<true>(p + i * block, keys, scramble_keys, acc, ahead, i * (block / 4));
  }
  for (; blocks > 0; --blocks, p += block) hash_block<false>(p, keys, scramble_keys, acc, LinesAhead({}), 0);
  __builtin_memcpy(lanes, acc, sizeof acc);
}

}  // namespace
}  // namespace nanquest::detail
