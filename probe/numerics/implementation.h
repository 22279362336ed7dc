/// The inner loops of scans, hashes and the gate: one `Implementation` per instruction set; the fastest one
/// is chosen at run time. Internal to the room.
///
/// Every scan and hash gives the same numbers, bit for bit: sums are kept in a fixed number of lanes and
/// folded in a fixed order, for every vector width. Pointers may have any alignment.
///
/// The environment variable NANQUEST_SIMD (base, avx2 or avx512) picks a lower one, for tests and
/// measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::detail {

/// Maximum number of bytes of one kernel call: small enough to be read again from the first-level cache
/// (measured: 16 KiB is slower by a sixth, 4 KiB the same).
inline constexpr std::size_t kScanBlock = 8192;

/// Counts of a block. Non-finite magnitudes count as large numbers here.
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

/// Non-finite elements of a block, and the largest finite pattern.
struct Damage {
  std::uint64_t bad;
  std::uint64_t infinite;           ///< patterns equal to `first_bad`
  std::uint64_t negative_infinite;  ///< those with the sign set
  std::uint64_t max_finite;
};

/// What a kernel may prefetch for the following blocks while it computes.
struct Ahead {
  const void* block;          ///< the kernel's block in the tensor; the kernel itself may read a copy
  const void* end;            ///< end of the memory that will be read; nothing after it is prefetched
  bool three_passes = false;  ///< the exponents of this block will be counted too
};

/// The loops for elements of type T. A magnitude pattern is the bits without the sign.
template <class T>
struct BitKernels {
  T (*largest)(const void* data, std::size_t n, T abs_mask, Ahead ahead);
  Range (*range)(const void* data, std::size_t n, T abs_mask, Ahead ahead);
  Census (*census)(const void* data, std::size_t n, T abs_mask, T min_normal, Ahead ahead);
  /// Copies, with everything from `first_bad` on replaced by zero.
  Damage (*without_bad)(const void* data, std::size_t n, T abs_mask, T first_bad, T* out);
};

/// What a loop of the gate measured: Σx², and the bits of the largest magnitude (as fp64 for fp64, else as
/// fp32).
struct GateSeen {
  double sum = 0;
  std::uint64_t top = 0;
};

struct Implementation {
  const char* name;  ///< the value of NANQUEST_SIMD
  std::uint8_t (*largest8)(const void* data, std::size_t n, std::uint8_t abs_mask, Ahead ahead);
  BitKernels<std::uint16_t> bits16;
  BitKernels<std::uint32_t> bits32;
  BitKernels<std::uint64_t> bits64;
  double (*squares_fp64)(const void* data, std::size_t n, Ahead ahead);  ///< Σx² of finite numbers
  double (*squares_fp32)(const void* data, std::size_t n, Ahead ahead);
  /// Σx² of 16-bit floats. `ceiling` is a power of two ≥ every x², with room for `n` of them in fp32.
  double (*squares_fp16)(const void* data, std::size_t n, float ceiling, Ahead ahead);
  double (*squares_bf16)(const void* data, std::size_t n, float ceiling, Ahead ahead);
  /// Adds to counts[f] how many elements have the exponent field f, for f = low … high. The block has
  /// `expected` elements with such a field; the search ends when they are found.
  using ExponentFields = void(const void* data, std::size_t n, int low, int high, std::size_t expected,
                              std::uint64_t* counts, Ahead ahead);
  ExponentFields* fields_fp32;
  ExponentFields* fields_fp16;
  ExponentFields* fields_bf16;
  /// Whole blocks of hash.h; `keys` is the key table.
  void (*hash_blocks)(const void* data, std::size_t blocks, const std::uint64_t* keys, std::uint64_t* lanes);
  /// Loops of gate_loops.h over aligned elements: multiply by `factor` in place if `store`, and measure.
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

/// The implementations that this machine can run, slowest first; at least one.
std::span<const Implementation* const> implementations();
/// The implementation with this name; the fastest if `name` is null, unknown, or not supported by this
/// machine.
const Implementation& implementation_named(const char* name);
/// The implementation that NANQUEST_SIMD selected when this was first called.
const Implementation& implementation();

}  // namespace nanquest::detail
