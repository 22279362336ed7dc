// Elements of a TensorData as doubles; included by viewer/model/tensors.h.
#include <cstring>

namespace nanquest::viewer {
namespace detail {

template <class T, class Visit>
void visit_as(const TensorData& data, Visit& visit) {
  for (std::size_t at = 0; at + sizeof(T) <= data.bytes.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, data.bytes.data() + at, sizeof x);
    visit(static_cast<double>(x));
  }
}

/// Through a table of all bit patterns: decoding one by one is 20 times slower.
template <class Bits, class Visit>
void visit_decoded(const TensorData& data, Format format, Visit& visit) {
  std::vector<double> table(std::size_t{1} << (8 * sizeof(Bits)));
  for (std::size_t bits = 0; bits < table.size(); ++bits) table[bits] = decode(format, bits);
  for (std::size_t at = 0; at + sizeof(Bits) <= data.bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, data.bytes.data() + at, sizeof bits);
    visit(table[bits]);
  }
}

}  // namespace detail

template <class Visit>
void for_each_value(const TensorData& data, Visit&& visit) {
  switch (data.dtype) {
    case DType::float64: return detail::visit_as<double>(data, visit);
    case DType::float32: return detail::visit_as<float>(data, visit);
    case DType::float16: return detail::visit_decoded<std::uint16_t>(data, Format::fp16, visit);
    case DType::bfloat16: return detail::visit_decoded<std::uint16_t>(data, Format::bf16, visit);
    case DType::float8_e4m3fn: return detail::visit_decoded<std::uint8_t>(data, Format::fp8_e4m3, visit);
    case DType::float8_e5m2: return detail::visit_decoded<std::uint8_t>(data, Format::fp8_e5m2, visit);
    case DType::int64: return detail::visit_as<std::int64_t>(data, visit);
    case DType::int32: return detail::visit_as<std::int32_t>(data, visit);
    case DType::int16: return detail::visit_as<std::int16_t>(data, visit);
    case DType::int8: return detail::visit_as<std::int8_t>(data, visit);
    case DType::uint8:
    case DType::boolean: return detail::visit_as<std::uint8_t>(data, visit);
    case DType::uint16: return detail::visit_as<std::uint16_t>(data, visit);
    case DType::uint32: return detail::visit_as<std::uint32_t>(data, visit);
    case DType::uint64: return detail::visit_as<std::uint64_t>(data, visit);
    case DType::complex64: return detail::visit_as<float>(data, visit);
    case DType::complex128: return detail::visit_as<double>(data, visit);
  }
}

}  // namespace nanquest::viewer
