#include "probe/record/tokens.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"

namespace nanquest::record {

Header header_of(ArgKind kind, std::int64_t number) {
  Header header;
  header.kind = kind;
  header.number = static_cast<std::int32_t>(number);
  return header;
}

namespace {

void put_text(Words& words, ArgKind kind, const std::string& text) {
  words.put(header_of(kind, static_cast<std::int64_t>(text.size())));
  const std::size_t count = (text.size() + 7) / 8;
  if (count == 0) return;
  std::uint64_t* to = words.extend(count);
  to[count - 1] = 0;
  std::memcpy(to, text.data(), text.size());
}

void put_device(Words& words, ArgKind kind, c10::Device device) {
  Header header = header_of(kind, device.index());
  header.scalar_type = static_cast<std::int8_t>(device.type());
  words.put(header);
}

}  // namespace

void put_tensor(Words& words, const at::Tensor& t, std::uint32_t slot, std::uint8_t more) {
  Header header =
      header_of(ArgKind::tensor, slot == SlotIndex::kMissing ? kNone : static_cast<std::int64_t>(slot));
  if (!t.defined()) {
    header.flags = kTensorUndefined;
    words.put(header);
    return;
  }
  const bool sized = !t.is_nested() && !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  const c10::IntArrayRef sizes = sized ? t.sizes() : c10::IntArrayRef();
  const std::size_t dim = sizes.size();
  if (dim > 255) throw std::length_error("a tensor has more than 255 dimensions");
  header.dim = static_cast<std::uint8_t>(dim);
  header.scalar_type = static_cast<std::int8_t>(t.scalar_type());
  if (slot == SlotIndex::kMissing) {
    header.flags = kTensorOpaque;
    words.put(header);
    if (dim) std::memcpy(words.extend(dim), sizes.data(), dim * sizeof(std::int64_t));
    return;
  }
  header.flags = static_cast<std::uint8_t>(tensor_flags(t) | more);
  std::uint64_t* to = words.extend(2 + 2 * dim);
  to[0] = std::bit_cast<std::uint64_t>(header);
  to[1] = static_cast<std::uint64_t>(t.storage_offset());
  if (dim) {
    std::memcpy(to + 2, sizes.data(), dim * sizeof(std::int64_t));
    std::memcpy(to + 2 + dim, t.strides().data(), dim * sizeof(std::int64_t));
  }
}

bool put_scalar(Words& words, const c10::IValue& value) {
  if (value.isNone()) {
    words.put(header_of(ArgKind::none));
  } else if (value.isInt()) {
    words.put(header_of(ArgKind::integer));
    words.put_value(value.toInt());
  } else if (value.isDouble()) {
    words.put(header_of(ArgKind::real));
    words.put_value(value.toDouble());
  } else if (value.isBool()) {
    Header header = header_of(ArgKind::boolean);
    header.scalar_type = value.toBool() ? 1 : 0;
    words.put(header);
  } else if (value.isSymInt()) {
    words.put(header_of(ArgKind::integer));
    words.put_value(value.toSymInt().guard_int(__FILE__, __LINE__));
  } else if (value.isComplexDouble()) {
    words.put(header_of(ArgKind::complex));
    words.put_value(value.toComplexDouble().real());
    words.put_value(value.toComplexDouble().imag());
  } else if (value.isString()) {
    put_text(words, ArgKind::string, value.toStringRef());
  } else if (value.isDevice()) {
    put_device(words, ArgKind::device, value.toDevice());
  } else if (value.isGenerator()) {
    put_device(words, ArgKind::generator, value.toGenerator().device());
  } else {
    return false;
  }
  return true;
}

const char* const kTupleType = "tuple";

const char* kept_text(std::string_view text) {
  static std::mutex mutex;
  // Leaked on purpose: records that outlive static destructors refer to it.
  static auto* all = new std::set<std::string, std::less<>>();
  const std::lock_guard lock(mutex);
  const auto at = all->find(text);
  return (at == all->end() ? *all->emplace(text).first : *at).c_str();
}

const char* element_type(const c10::IValue& list) {
  if (list.isTensorList()) return "Tensor";
  if (list.isOptionalTensorList()) return "Tensor?";
  if (list.isIntList() || list.isSymIntList()) return "int";
  if (list.isDoubleList()) return "float";
  if (list.isBoolList()) return "bool";
  return list.isList() ? kept_text(list.toList().elementType()->str()) : kTupleType;
}

at::Tensor view_at(const std::uint64_t* token, const at::Tensor& flat) {
  Reader reader(token);
  const Header header = reader.header();
  if (!flat.defined() || flat.scalar_type() != static_cast<at::ScalarType>(header.scalar_type)) return {};
  const auto offset = reader.value<std::int64_t>();
  const c10::IntArrayRef sizes(reader.numbers(header.dim), header.dim);
  const c10::IntArrayRef strides(reader.numbers(header.dim), header.dim);
  return reaches_within(sizes, strides, offset, flat.numel()) ? flat.as_strided(sizes, strides, offset)
                                                              : at::Tensor{};
}

}  // namespace nanquest::record
