// The body of every Implementation. A source file defines NANQUEST_IMPLEMENTATION (the object's name) and
// NANQUEST_VECTOR_BYTES, is compiled for its instruction set, and includes this once. Everything is in the
// anonymous namespace and no function of the standard library is called: a shared inline function could be
// emitted here with instructions that other machines lack, and then be linked everywhere.

#include "probe/numerics/kernels_bits.h"
#include "probe/numerics/kernels_fields.h"
#include "probe/numerics/kernels_gate.h"
#include "probe/numerics/kernels_hash.h"
#include "probe/numerics/kernels_squares.h"

namespace nanquest::detail {
namespace {

template <class T>
constexpr BitKernels<T> bit_kernels() {
  return {largest<T>, range<T>, census<T>, without_bad<T>};
}

}  // namespace

constinit const Implementation NANQUEST_IMPLEMENTATION = {NANQUEST_IMPLEMENTATION_NAME,
                                                          largest<std::uint8_t>,
                                                          bit_kernels<std::uint16_t>(),
                                                          bit_kernels<std::uint32_t>(),
                                                          bit_kernels<std::uint64_t>(),
                                                          squares_fp64,
                                                          squares_fp32,
                                                          squares_fp16,
                                                          squares_bf16,
                                                          exponent_fields<std::uint32_t, 23>,
                                                          exponent_fields<std::uint16_t, 10>,
                                                          exponent_fields<std::uint16_t, 7>,
                                                          hash_blocks,
                                                          gate_fp64,
                                                          gate_fp32,
                                                          gate_16<GateFp16>,
                                                          gate_16<GateBf16>};

}  // namespace nanquest::detail
