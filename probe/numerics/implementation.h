/// The loops that scans, hashes and the gate spend their time in: one `Implementation` per instruction set,
/// the fastest one is chosen at run time. Internal to the room.
///
/// Every scan and hash gives the same numbers, bit for bit: sums are kept in a fixed number of lanes and
/// folded in a fixed order, whatever the width of the machine's vectors. Pointers may have any alignment.
///
/// The environment variable NANQUEST_SIMD (base, avx2 or avx512) picks a lower one, for tests and
/// measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::detail {

/// Bytes of memory that one kernel call covers at most: small enough to be read again from the first-level
/// cache (16 KiB was measured to be slower by a sixth, 4 KiB the same).
inline constexpr std::size_t kScanBlock = 8192;

/// What a block holds. Magnitudes that are not finite count as large numbers here.
struct Census {
  std::uint64_t zero;
  std::uint64_t subnormal;
  std::uint64_t max;  ///< largest pattern
  std::uint64_t min;  ///< smallest non-zero pattern, `abs_mask` if none
};

/// Smallest and largest magnitude pattern of a block.
struct Range {
  std::uint64_t min;
  std::uint64_t max;
};

/// What is not finite in a block, and the largest pattern that is.
struct Damage {
  std::uint64_t bad;
  std::uint64_t infinite;           ///< patterns equal to `first_bad`
  std::uint64_t negative_infinite;  ///< those with the sign set
  std::uint64_t max_finite;
};

/// What a kernel may fetch from memory for the blocks that follow while it computes.
struct Ahead {
  const void* block;          ///< where the kernel's block lies in the tensor: what it reads may be a copy
  const void* end;            ///< of the memory that will be read; nothing from there on is asked for
  bool three_passes = false;  ///< the exponents of this block will be counted too
};

/// The loops for elements of type T, a magnitude pattern being the bits without the sign.
template <class T>
struct BitKernels {
  T (*largest)(const void* data, std::size_t n, T abs_mask, Ahead ahead);
  Range (*range)(const void* data, std::size_t n, T abs_mask, Ahead ahead);
  Census (*census)(const void* data, std::size_t n, T abs_mask, T min_normal, Ahead ahead);
  /// Copies, with everything from `first_bad` on replaced by zero.
  Damage (*without_bad)(const void* data, std::size_t n, T abs_mask, T first_bad, T* out);
};

/// What a loop of the gate saw: Σx², and the bits of the largest magnitude (as fp64 for fp64, else as fp32).
struct GateSeen {
  double sum = 0;
  std::uint64_t top = 0;
};

struct Implementation {
  const char* name;  ///< as NANQUEST_SIMD has it
  std::uint8_t (*largest8)(const void* data, std::size_t n, std::uint8_t abs_mask, Ahead ahead);
  BitKernels<std::uint16_t> bits16;
  BitKernels<std::uint32_t> bits32;
  BitKernels<std::uint64_t> bits64;
  double (*squares_fp64)(const void* data, std::size_t n, Ahead ahead);  ///< Σx² of finite numbers
  double (*squares_fp32)(const void* data, std::size_t n, Ahead ahead);
  /// Σx² of 16-bit floats. `ceiling` is a power of two ≥ every x², with room for `n` of them in fp32.
  double (*squares_fp16)(const void* data, std::size_t n, float ceiling, Ahead ahead);
  double (*squares_bf16)(const void* data, std::size_t n, float ceiling, Ahead ahead);
  /// Adds to counts[f] how many elements have the exponent field f, for f = low … high; `expected` elements
  /// of the block have such a field (the search ends when they are found).
  using ExponentFields = void(const void* data, std::size_t n, int low, int high, std::size_t expected,
                              std::uint64_t* counts, Ahead ahead);
  ExponentFields* fields_fp32;
  ExponentFields* fields_fp16;
  ExponentFields* fields_bf16;
  /// Whole blocks of hash.h; `keys` is its table.
  void (*hash_blocks)(const void* data, std::size_t blocks, const std::uint64_t* keys, std::uint64_t* lanes);
  /// Loops of gate_loops.h over aligned elements: multiplied by `factor` in place if `store`, and measured.
  using GateLoop = GateSeen(void* data, std::size_t n, double factor, bool store);
  GateLoop* gate_fp64;
  GateLoop* gate_fp32;
  GateLoop* gate_fp16;
  GateLoop* gate_bf16;
};

extern const Implementation kBase;  ///< any machine
#if defined(NANQUEST_X86)
extern const Implementation kAvx2;    ///< AVX2, FMA, F16C
extern const Implementation kAvx512;  ///< AVX512 F, BW, DQ, VL
#endif

/// Those that this machine can run, slowest first; at least one.
std::span<const Implementation* const> implementations();
/// The one called `name`; the fastest if it is null, unknown, or more than this machine can run.
const Implementation& implementation_named(const char* name);
/// What NANQUEST_SIMD asked for when this was first called.
const Implementation& implementation();

}  // namespace nanquest::detail
