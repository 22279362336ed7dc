/// Scans and hash against a plain sum of the same bytes, one thread, memory far larger than any cache.
///
/// NANQUEST_SIMD=avx2 (or base) measures what a smaller processor runs.
///
/// Lines named `scan_…` give speed over the sum's speed (1 = as fast as memory can be read); the goal of the
/// product is 0.85 for the three training formats, whatever the data, with and without the exponent
/// histogram: "relu" has half zeros, "tiny" a third of subnormals, "masked" a third of -Inf, whose blocks are
/// copied without them (no goal of the product: what it costs).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "probe/numerics/format.h"
#include "probe/numerics/gate_loops.h"
#include "probe/numerics/implementation.h"
#include "probe/numerics/scan.h"
#include "tests/bench/report.h"

namespace nanquest::bench {
namespace {

volatile double sink;

std::vector<unsigned char> tensor(DType type, std::size_t bytes, const std::string& kind) {
  // A million random elements, repeated: making more would take longer than measuring.
  std::mt19937_64 rng(1);
  std::normal_distribution<double> normal;
  const Format format = *format_of(type);
  const std::size_t size = dtype_size(type);
  std::vector<unsigned char> out(bytes);
  const std::size_t piece = std::min<std::size_t>(bytes, (std::size_t{1} << 20) * size);
  for (std::size_t i = 0; i < piece / size; ++i) {
    double x = normal(rng);
    if (kind == "relu") x = std::max(x, 0.0);
    if (kind == "masked" && i % 3 == 0) x = -INFINITY;
    if (kind == "tiny" && i % 3 == 0) x = info(format).min_subnormal;
    const std::uint64_t bits = encode(format, x);
    std::memcpy(out.data() + i * size, &bits, size);
  }
  for (std::size_t at = piece; at < bytes; at += piece)
    std::memcpy(out.data() + at, out.data(), std::min(piece, bytes - at));
  return out;
}

/// The plain sum of the same bytes, as fast as the compiler makes it: what memory gives to one thread.
double plain_sum(const std::vector<unsigned char>& bytes) {
  const auto* p = reinterpret_cast<const std::uint64_t*>(bytes.data());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size() / 8; ++i) sum += p[i];
  return static_cast<double>(sum);
}

/// Speed of `f` over the speed of the plain sum.
void compare(const std::string& name, const std::vector<unsigned char>& data, double goal,
             const std::function<double()>& f) {
  std::vector<double> ratios = paired_ratios([&] { sink = f(); }, [&] { sink = plain_sum(data); }, 15);
  for (double& r : ratios) r = 1 / r;
  report(name, ratios, goal, Better::higher);
}

void run(DType type, std::size_t bytes) {
  const std::string name(dtype_name(type));
  const std::size_t n = bytes / dtype_size(type);
  for (const std::string kind : {"", "relu", "tiny", "masked"}) {
    const auto data = tensor(type, bytes, kind);
    compare("scan_" + name + (kind.empty() ? "" : "_" + kind), data, kind == "masked" ? 0.4 : 0.85,
            [&] { return scan(type, data.data(), n).sum_squares; });
  }
  const auto data = tensor(type, bytes, "");
  ExponentHistogram histogram{};
  compare("scan_" + name + "_histogram", data, 0.85,
          [&] { return scan(type, data.data(), n, &histogram).sum_squares; });
  compare("any_non_finite_" + name, data, 0.85,
          [&] { return any_non_finite(type, data.data(), n) ? 1.0 : 0.0; });
  compare("scan_and_hash_" + name, data, 0.5,
          [&] { return static_cast<double>(scan_and_hash(type, data.data(), n).hash); });
  compare("gate_measure_" + name, data, 0.85, [&] { return measure(type, data.data(), n).sum_squares; });
}

}  // namespace
}  // namespace nanquest::bench

int main() {
  using namespace nanquest;
  constexpr std::size_t bytes = std::size_t{192} << 20;
  {
    const std::vector<unsigned char> ones(bytes, 1);
    bench::sink = bench::plain_sum(ones);
    const double once = bench::seconds([&] { bench::sink = bench::plain_sum(ones); });
    std::printf(
        "# numerics (%s): speed over that of a plain sum of the same 192 MiB (%.1f GB/s), one thread each\n",
        detail::implementation().name, static_cast<double>(bytes) / once * 1e-9);
  }
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) bench::run(type, bytes);
  const auto data = bench::tensor(DType::float32, bytes, "");
  bench::compare("hash_bytes", data, 0.85,
                 [&] { return static_cast<double>(hash_bytes(data.data(), bytes)); });
  return 0;
}
