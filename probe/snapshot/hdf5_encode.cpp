#include "probe/snapshot/hdf5_encode.h"

#include <algorithm>
#include <bit>

namespace nanquest::hdf5 {
namespace {

enum Message {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kFillValue = 0x05,
  kLink = 0x06,
  kLayout = 0x08,
  kGroupInfo = 0x0a,
  kAttribute = 0x0c
};
constexpr int kConstant = 1;  ///< message flag: never changes

enum Class { kFixed = 0, kFloat = 1, kString = 3, kCompound = 6, kEnum = 8 };

void put(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

void put_at(std::string& out, std::size_t at, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out[at + static_cast<std::size_t>(i)] = static_cast<char>(number >> (8 * i));
}

void type_head(std::string& out, int version, Class kind, unsigned bits, std::size_t size) {
  put(out, static_cast<unsigned>(version << 4 | kind), 1);
  put(out, bits, 3);
  put(out, size, 4);
}

void fixed(std::string& out, std::size_t size, bool is_signed) {
  type_head(out, 1, kFixed, is_signed ? 8 : 0, size);
  put(out, 0, 2);  // bit offset
  put(out, 8 * size, 2);
}

/// An IEEE-like little-endian float: sign, exponent, mantissa with an implied 1.
void floating(std::string& out, std::size_t size, unsigned mantissa, unsigned exponent) {
  const auto bits = static_cast<unsigned>(8 * size);
  type_head(out, 1, kFloat, 0x20 | (bits - 1) << 8, size);
  put(out, 0, 2);  // bit offset
  put(out, bits, 2);
  put(out, mantissa, 1);
  put(out, exponent, 1);
  put(out, 0, 1);  // place of the mantissa
  put(out, mantissa, 1);
  put(out, (1U << (exponent - 1)) - 1, 4);
}

void text(std::string& out, std::size_t size) {
  type_head(out, 1, kString, 0x11, size);  // padded with zeros, UTF-8
}

void put_name(std::string& out, std::string_view name) {
  out.append(name);
  out.push_back('\0');
}

/// h5py's bool.
void boolean(std::string& out) {
  type_head(out, 3, kEnum, 2, 1);
  fixed(out, 1, true);
  put_name(out, "FALSE");
  put_name(out, "TRUE");
  put(out, 0, 1);
  put(out, 1, 1);
}

/// numpy's complex: {r, i}.
void complex(std::string& out, std::size_t part, unsigned mantissa, unsigned exponent) {
  type_head(out, 3, kCompound, 2, 2 * part);
  put_name(out, "r");
  put(out, 0, 1);
  floating(out, part, mantissa, exponent);
  put_name(out, "i");
  put(out, part, 1);
  floating(out, part, mantissa, exponent);
}

void type_of(std::string& out, DType dtype) {
  switch (dtype) {
    case DType::float64:
      return floating(out, 8, 52, 11);
    case DType::float32:
      return floating(out, 4, 23, 8);
    case DType::float16:
      return floating(out, 2, 10, 5);
    case DType::bfloat16:
      return floating(out, 2, 7, 8);
    case DType::int64:
    case DType::int32:
    case DType::int16:
    case DType::int8:
      return fixed(out, dtype_size(dtype), true);
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
      return fixed(out, dtype_size(dtype), false);
    case DType::boolean:
      return boolean(out);
    case DType::complex64:
      return complex(out, 4, 23, 8);
    case DType::complex128:
      return complex(out, 8, 52, 11);
  }
}

void space_of(std::string& out, const std::vector<std::uint64_t>& shape) {
  put(out, 2, 1);  // version
  put(out, shape.size(), 1);
  put(out, 0, 1);  // no maximum sizes
  put(out, shape.empty() ? 0 : 1, 1);
  for (const std::uint64_t n : shape) put(out, n, 8);
}

}  // namespace

void Messages::begin(int message, int flags) {
  put(bytes_, static_cast<unsigned>(message), 1);
  put(bytes_, 0, 2);  // size
  put(bytes_, static_cast<unsigned>(flags), 1);
  open_ = bytes_.size();
}

void Messages::end() {
  put_at(bytes_, open_ - 3, bytes_.size() - open_, 2);
}

void Messages::dataspace(const std::vector<std::uint64_t>& shape) {
  begin(kDataspace, 0);
  space_of(bytes_, shape);
  end();
}

void Messages::datatype(DType dtype) {
  begin(kDatatype, kConstant);
  type_of(bytes_, dtype);
  end();
}

void Messages::no_fill() {
  begin(kFillValue, kConstant);
  put(bytes_, 3, 1);           // version
  put(bytes_, 1 | 1 << 2, 1);  // allocated early, never written
  end();
}

void Messages::contiguous(std::uint64_t address, std::uint64_t bytes) {
  begin(kLayout, 0);
  put(bytes_, 3, 1);  // version
  put(bytes_, 1, 1);  // contiguous
  put(bytes_, address, 8);
  put(bytes_, bytes, 8);
  end();
}

void Messages::group() {
  begin(kLinkInfo, 0);
  put(bytes_, 0, 2);         // version, no creation order
  put(bytes_, kNowhere, 8);  // no heap: the links are messages of this header
  put(bytes_, kNowhere, 8);
  end();
  begin(kGroupInfo, kConstant);
  put(bytes_, 0, 1);  // version
  put(bytes_, 1, 1);  // bounds of compact links follow
  put(bytes_, 0xffff, 2);
  put(bytes_, 0xfffe, 2);
  end();
}

void Messages::link(std::string_view name, std::uint64_t address) {
  begin(kLink, 0);
  put(bytes_, 1, 1);            // version
  put(bytes_, 0x10 | 0x01, 1);  // hard; a character set, and two bytes of length
  put(bytes_, 1, 1);            // UTF-8
  put(bytes_, name.size(), 2);
  bytes_.append(name);
  put(bytes_, address, 8);
  end();
}

void Messages::attribute(const Attribute& attribute) {
  std::string type, space, value;
  space_of(space, {});
  if (const auto* words = std::get_if<std::string_view>(&attribute.value)) {
    value = words->substr(0, kMostAttributeText);
    if (value.empty()) value.push_back('\0');  // no type has 0 bytes
    text(type, value.size());
  } else {
    const auto* number = std::get_if<std::int64_t>(&attribute.value);
    put(value, number ? static_cast<std::uint64_t>(*number) : std::get<std::uint64_t>(attribute.value), 8);
    fixed(type, 8, number != nullptr);
  }
  ++attributes_;
  begin(kAttribute, 0);
  put(bytes_, 3, 2);  // version, nothing shared
  put(bytes_, attribute.name.size() + 1, 2);
  put(bytes_, type.size(), 2);
  put(bytes_, space.size(), 2);
  put(bytes_, 0, 1);  // the name is ASCII
  put_name(bytes_, attribute.name);
  bytes_.append(type).append(space).append(value);
  end();
}

void Messages::append_to(std::string& out) const {
  const std::size_t start = out.size();
  out.append("OHDR");
  put(out, 2, 1);  // version
  // If there are more attributes than the format's default limit, the header says so; otherwise a library
  // that adds one would move them all.
  constexpr std::size_t few = 8;
  put(out, attributes_ > few ? 0x12 : 0x02, 1);  // the size has 4 bytes
  if (attributes_ > few) {
    put(out, attributes_, 2);
    put(out, few - 2, 2);
  }
  put(out, bytes_.size(), 4);
  out.append(bytes_);
  put(out, lookup3(std::string_view(out).substr(start)), 4);
}

std::string superblock(std::uint64_t base, std::uint64_t end, std::uint64_t root) {
  std::string out("\211HDF\r\n\032\n");
  put(out, 3, 1);  // version
  put(out, 8, 1);  // bytes of an address
  put(out, 8, 1);  // bytes of a length
  put(out, 0, 1);  // no open for writing
  put(out, base, 8);
  put(out, kNowhere, 8);  // no extension
  put(out, end, 8);
  put(out, root, 8);
  put(out, lookup3(out), 4);
  return out;
}

std::uint32_t lookup3(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(left), b = a, c = a;
  const auto word = [](const unsigned char* from) {
    return std::uint32_t{from[0]} | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 |
           std::uint32_t{from[3]} << 24;
  };
  const auto step = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t& z, int turn) {
    x -= z;
    x ^= std::rotl(z, turn);
    z += y;
  };
  for (; left > 12; left -= 12, p += 12) {
    a += word(p);
    b += word(p + 4);
    c += word(p + 8);
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
  }
  if (left == 0) return c;
  unsigned char rest[12] = {};
  std::copy_n(p, left, rest);
  a += word(rest);
  b += word(rest + 4);
  c += word(rest + 8);
  const auto last = [](std::uint32_t& x, std::uint32_t y, int turn) {
    x ^= y;
    x -= std::rotl(y, turn);
  };
  last(c, b, 14);
  last(a, c, 11);
  last(b, a, 25);
  last(c, b, 16);
  last(a, c, 4);
  last(b, a, 14);
  last(c, b, 24);
  return c;
}

}  // namespace nanquest::hdf5
