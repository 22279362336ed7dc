#include "replay/share/scramble.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "probe/numerics/format.h"

namespace nanquest {
namespace {

/// Bits of the largest magnitude that are kept, after the leading one: a sixteenth.
constexpr int kKeptDigits = 4;

std::uint64_t load(const std::byte* at, int width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(width));  // little-endian, as everything here
  return bits;
}

void store(std::byte* at, std::uint64_t bits, int width) {
  std::memcpy(at, &bits, static_cast<std::size_t>(width));
}

/// Elements of one index of the first axis; all of a vector.
std::size_t slice_of(const std::vector<std::int64_t>& shape, std::size_t count) {
  // At least one element: a forged shape could make a walk by slices endless.
  return shape.size() < 2 || shape[0] <= 0
             ? count
             : std::max<std::size_t>(1, count / static_cast<std::size_t>(shape[0]));
}

std::size_t row_of(const std::vector<std::int64_t>& shape, std::size_t count) {
  return shape.empty() || shape.back() <= 0 ? count : static_cast<std::size_t>(shape.back());
}

template <class T>
std::int64_t whole(T value) {
  return static_cast<std::int64_t>(value);  // NOLINT(bugprone-signed-char-misuse): a number, not a character
}

}  // namespace

Scrambler::Scrambler() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
  random_.seed(seed);
}

std::uint64_t Scrambler::below(std::uint64_t bound) {
  return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
}

std::int64_t Scrambler::image(Bijection& map, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (const auto known = map.image.find(value); known != map.image.end()) return known->second;
  std::uniform_int_distribution<std::int64_t> draw(low, high);
  std::int64_t other = draw(random_);
  while (!map.used.insert(other).second) other = draw(random_);
  map.image.emplace(value, other);
  return other;
}

void Scrambler::floats(std::byte* bytes, std::size_t count, std::size_t slice, int mantissa_bits, int width) {
  const std::uint64_t mantissas = std::uint64_t{1} << mantissa_bits;
  const int bits = 8 * width;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t top = (sign - 1) >> mantissa_bits;     // the exponent of NaN and Inf
  const bool four_three = width == 1 && mantissa_bits == 3;  // fp8 e4m3 has numbers with that exponent
  const auto healthy = [&](std::uint64_t v) {
    const std::uint64_t size = v & (sign - 1);
    return size != 0 && (four_three ? size != sign - 1 : (size >> mantissa_bits) != top);
  };
  // The largest value, with its kept bits.
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (const std::uint64_t v = load(bytes + i * static_cast<std::size_t>(width), width); healthy(v))
      largest = std::max(largest, v & (sign - 1));
  const std::uint64_t most = largest >> mantissa_bits;
  const int cut = std::max(0, mantissa_bits - kKeptDigits);
  const std::uint64_t cap = (largest & (mantissas - 1)) >> cut << cut;
  bool largest_is_there = false;
  std::vector<std::size_t> places;
  std::vector<std::uint64_t> tops;
  for (std::size_t begin = 0; begin < count; begin += slice) {
    places.clear();
    tops.clear();
    for (std::size_t i = begin; i < std::min(count, begin + slice); ++i) {
      const std::uint64_t v = load(bytes + i * static_cast<std::size_t>(width), width);
      if (!healthy(v)) continue;
      places.push_back(i);
      tops.push_back(v >> mantissa_bits);
    }
    std::shuffle(tops.begin(), tops.end(), random_);
    for (std::size_t k = 0; k < places.size(); ++k) {
      std::uint64_t lead = tops[k];
      const std::uint64_t exponent = lead & (sign >> mantissa_bits) ? lead - (sign >> mantissa_bits) : lead;
      std::uint64_t digits = below(mantissas);
      if (exponent == most && !largest_is_there) {
        digits = cap;
        largest_is_there = true;
      } else if (exponent == most && cap == 0 && exponent > 1) {
        --lead;  // no number of this size can be changed: it would become larger than the largest
      } else if (exponent == most) {
        digits = below(cap + 1);
      }
      if (exponent == 0 && digits == 0) digits = 1;  // a zero has another meaning
      store(bytes + places[k] * static_cast<std::size_t>(width), lead << mantissa_bits | digits, width);
    }
  }
}

template <class T>
void Scrambler::integers(std::byte* bytes, std::size_t count, std::size_t slice, std::size_t row,
                         std::int64_t vocabulary) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes, count * sizeof(T));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const T least = *low, most = *high;
  const bool mask = least >= T{0} && most <= T{1};
  const std::size_t part = mask ? row : slice;
  for (std::size_t begin = 0; begin < count; begin += part)
    std::shuffle(values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(std::min(count, begin + part)), random_);
  if (!mask) {
    const std::int64_t end = whole(most);
    if (vocabulary <= 0) vocabulary = std::max<std::int64_t>(0, end) + 1;
    Bijection negative, beyond;
    for (T& value : values) {
      const std::int64_t v = whole(value);
      std::int64_t other = v;
      if (v < 0 && v != -1 && v != -100)
        other = image(negative, v, whole(least), -2);
      else if (v >= vocabulary)
        other = image(beyond, v, vocabulary, end);
      else if (v >= 0)
        other = image(vocabularies_[vocabulary], v, 0, vocabulary - 1);
      value = static_cast<T>(other);
    }
  }
  std::memcpy(bytes, values.data(), count * sizeof(T));
}

void Scrambler::scramble(TensorData& tensor, std::int64_t vocabulary) {
  std::size_t count = tensor.bytes.size() / dtype_size(tensor.dtype);
  if (count == 0) return;
  std::byte* const bytes = tensor.bytes.data();
  const std::size_t slice = slice_of(tensor.shape, count), row = row_of(tensor.shape, count);
  if (const auto format = format_of(tensor.dtype)) {
    const FormatInfo& facts = info(*format);
    floats(bytes, count, slice, facts.mantissa_bits, facts.storage_bits / 8);
    return;
  }
  switch (tensor.dtype) {
    case DType::complex64:
      return floats(bytes, 2 * count, 2 * slice, info(Format::fp32).mantissa_bits, 4);
    case DType::complex128:
      return floats(bytes, 2 * count, 2 * slice, info(Format::fp64).mantissa_bits, 8);
    case DType::int64:
      return integers<std::int64_t>(bytes, count, slice, row, vocabulary);
    case DType::int32:
      return integers<std::int32_t>(bytes, count, slice, row, vocabulary);
    case DType::int16:
      return integers<std::int16_t>(bytes, count, slice, row, vocabulary);
    case DType::int8:
      return integers<std::int8_t>(bytes, count, slice, row, vocabulary);
    case DType::uint64:
      // Read as signed: numbers beyond that range are mapped there too.
      return integers<std::int64_t>(bytes, count, slice, row, vocabulary);
    case DType::uint32:
      return integers<std::uint32_t>(bytes, count, slice, row, vocabulary);
    case DType::uint16:
      return integers<std::uint16_t>(bytes, count, slice, row, vocabulary);
    default:
      return integers<std::uint8_t>(bytes, count, slice, row, vocabulary);
  }
}

}  // namespace nanquest
