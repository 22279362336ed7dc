#include "viewer/model/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::uint64_t kSearchChunk = 1ULL << 20;  // elements read at a time

static_assert(std::endian::native == std::endian::little);  // as the bytes of files are

std::uint64_t bits_of(const std::byte* at, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  return bits;
}

/// Value, hex and bits of a real number of `type`.
Element real(DType type, const std::byte* at) {
  Element e;
  const std::size_t bytes = dtype_size(type);
  const std::uint64_t bits = bits_of(at, bytes);
  e.hex = fmt::format("0x{:0{}x}", bits, 2 * bytes);
  std::string digits = fmt::format("{:0{}b}", bits, 8 * bytes);
  if (const std::optional<Format> format = format_of(type)) {
    const double value = decode(*format, bits);
    const FormatInfo& f = info(*format);
    e.value = short_number(value);
    e.exact = exact_number(value);
    e.finite = std::isfinite(value);
    digits.insert(1 + static_cast<std::size_t>(f.exponent_bits), 1, ' ');
    digits.insert(1, 1, ' ');
  } else {
    const bool is_signed =
        type == DType::int64 || type == DType::int32 || type == DType::int16 || type == DType::int8;
    const auto unused = static_cast<int>(64 - 8 * bytes);
    e.exact = is_signed ? std::to_string(static_cast<std::int64_t>(bits << unused) >> unused)
                        : std::to_string(bits);
    e.value = e.exact;
    for (std::size_t i = digits.size(); i > 8; i -= 8) digits.insert(i - 8, 1, ' ');
  }
  e.bits = std::move(digits);
  return e;
}

Element element(DType type, const std::byte* at) {
  if (!dtype_is_complex(type)) return real(type, at);
  const DType part = type == DType::complex64 ? DType::float32 : DType::float64;
  const Element a = real(part, at), b = real(part, at + dtype_size(part));
  return {0,
          "",
          a.value + ", " + b.value,
          a.exact + ", " + b.exact,
          a.hex + ", " + b.hex,
          a.bits + ", " + b.bits,
          a.finite && b.finite};
}

bool holds_bad(const TensorData& data, std::uint64_t first, std::uint64_t last) {
  const std::size_t size = dtype_size(data.dtype);
  return any_non_finite(data.dtype, data.bytes.data() + first * size, last - first);
}

/// The first bad element of [first, last), or the last one; there is one.
std::uint64_t bad_of(const TensorData& data, std::uint64_t first, std::uint64_t last, Direction direction) {
  while (last - first > 1) {
    const std::uint64_t middle = first + (last - first) / 2;
    const bool lower =
        direction == Direction::forward ? holds_bad(data, first, middle) : !holds_bad(data, middle, last);
    (lower ? last : first) = middle;
  }
  return first;
}

/// Complex numbers as pairs of reals.
TensorData as_reals(TensorData data) {
  if (data.dtype == DType::complex64) data.dtype = DType::float32;
  if (data.dtype == DType::complex128) data.dtype = DType::float64;
  return data;
}

/// Of [first, last) in that direction.
Result<std::optional<std::uint64_t>> search(const SnapshotReader& reader, const StoredTensor& tensor,
                                            std::uint64_t first, std::uint64_t last, Direction direction,
                                            Progress* progress) {
  while (first < last) {
    if (progress != nullptr && progress->stopped())
      return Error{ErrorCode::io, tensor.path + ": reading was stopped", ""};
    const std::uint64_t count = std::min(kSearchChunk, last - first);
    const std::uint64_t at = direction == Direction::forward ? first : last - count;
    Result<TensorData> read = reader.read_range(tensor.path, at, count);
    if (!read) return read.error();
    const TensorData data = as_reals(std::move(read).value());
    const std::uint64_t reals = data.bytes.size() / dtype_size(data.dtype), each = reals / count;
    if (progress != nullptr) progress->advance(data.bytes.size());
    if (holds_bad(data, 0, reals)) return std::optional(at + bad_of(data, 0, reals, direction) / each);
    (direction == Direction::forward ? first : last) = direction == Direction::forward ? at + count : at;
  }
  return std::optional<std::uint64_t>();
}

}  // namespace

std::string position_of(std::uint64_t index, const std::vector<std::int64_t>& shape) {
  if (shape.size() < 2) return "";
  std::vector<std::uint64_t> place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(shape[d], 1));
    place[d] = index % size;
    index /= size;
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

const Element* ElementPage::at(std::uint64_t index) const {
  if (elements.empty() || index < elements.front().index || index > elements.back().index) return nullptr;
  return &elements[index - elements.front().index];
}

const char* bits_title(DType dtype) {
  return dtype_is_float(dtype) ? "sign, exponent, mantissa" : "bits";
}

Result<ElementPage> load_elements(const SnapshotReader& reader, const StoredTensor& tensor,
                                  std::uint64_t index) {
  ElementPage page;
  page.total = element_count(tensor.shape);
  if (page.total == 0) return page;
  const std::uint64_t first = std::min(index, page.total - 1) / kElementPage * kElementPage;
  const Result<TensorData> data =
      reader.read_range(tensor.path, first, std::min(kElementPage, page.total - first));
  if (!data) return data.error();
  const std::size_t size = dtype_size(data->dtype);
  for (std::size_t i = 0; (i + 1) * size <= data->bytes.size(); ++i) {
    page.elements.push_back(element(data->dtype, data->bytes.data() + i * size));
    page.elements.back().index = first + i;
    page.elements.back().position = position_of(first + i, tensor.shape);
  }
  return page;
}

Result<std::optional<std::uint64_t>> find_bad(const SnapshotReader& reader, const StoredTensor& tensor,
                                              std::optional<std::uint64_t> from, Direction direction,
                                              Progress* progress) {
  if (!dtype_has_nan(tensor.dtype)) return std::optional<std::uint64_t>();
  const std::uint64_t total = element_count(tensor.shape);
  const bool forward = direction == Direction::forward;
  if (progress != nullptr) progress->expect(tensor.bytes);
  const std::uint64_t here = !from ? (forward ? 0 : total) : std::min(*from + (forward ? 1 : 0), total);
  const auto part = [&](bool rest) {
    return rest == forward ? search(reader, tensor, here, total, direction, progress)
                           : search(reader, tensor, 0, here, direction, progress);
  };
  Result<std::optional<std::uint64_t>> found = part(true);
  return !found || *found ? found : part(false);
}

}  // namespace nanquest::viewer
