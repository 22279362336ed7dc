#include "replay/report/repro_values.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "probe/tensor/tensor_scan.h"

namespace nanquest {

const Language kPython = {.none = "None",
                          .no = "False",
                          .yes = "True",
                          .nan = "float(\"nan\")",
                          .infinity = "float(\"inf\")",
                          .device = "torch.device(device)",
                          .open = "[",
                          .close = "]",
                          .space = "torch.",
                          .python = true};
const Language kCpp = {.none = "c10::IValue()",
                       .no = "false",
                       .yes = "true",
                       .nan = "NAN",
                       .infinity = "INFINITY",
                       .device = "device",
                       .open = "{",
                       .close = "}",
                       .space = "at::",
                       .python = false};

std::string ValueText::joined(at::IntArrayRef values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text;
}

std::string ValueText::real(double value) const {
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return sign + is_.nan;
  if (std::isinf(value)) return sign + is_.infinity;
  return shortest(value, [&](double other) { return other == value; });
}

std::string Language::type(at::ScalarType type) const {
  if (!python) return std::string("at::k") + c10::toString(type);
  return "torch." + std::string(dtype_name(*dtype_of(type)));
}

/// Enumerations are plain integers inside an IValue; only the schema tells.
std::optional<std::string> ValueText::integer(std::int64_t value, const std::string& schema_type) const {
  const auto is = [&](const char* part) { return schema_type.find(part) != std::string::npos; };
  if (is("ScalarType")) {
    const auto scalar = static_cast<at::ScalarType>(value);
    return dtype_of(scalar) ? std::optional(is_.type(scalar)) : std::nullopt;
  }
  if (is("Layout")) {
    if (static_cast<at::Layout>(value) != at::kStrided) return std::nullopt;
    return is_.python ? "torch.strided" : "at::kStrided";
  }
  if (is("MemoryFormat")) {
    constexpr std::pair<const char*, const char*> names[] = {{"contiguous_format", "Contiguous"},
                                                             {"preserve_format", "Preserve"},
                                                             {"channels_last", "ChannelsLast"},
                                                             {"channels_last_3d", "ChannelsLast3d"}};
    if (value < 0 || value >= 4) return std::nullopt;
    return is_.python ? std::string("torch.") + names[value].first
                      : std::string("at::MemoryFormat::") + names[value].second;
  }
  if (!is_.python && value == INT64_MIN) return "INT64_MIN";
  return std::to_string(value);
}

std::optional<std::string> ValueText::list(const c10::IValue& v, const std::string& schema_type,
                                           const std::string& name) {
  std::string inside;
  const auto elements = v.toListRef();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto one = value(elements[i], schema_type, name + "." + std::to_string(i));
    if (!one) return std::nullopt;
    if (!is_.python && elements[i].isNone()) one = "std::nullopt";
    inside += (i ? ", " : "") + *one;
  }
  if (is_.python) return "[" + inside + "]";
  const c10::TypePtr element = v.toList().elementType();
  const char* type = v.isOptionalTensorList()                       ? "std::optional<at::Tensor>"
                     : v.isTensorList()                             ? "at::Tensor"
                     : v.isIntList()                                ? "std::int64_t"
                     : v.isDoubleList()                             ? "double"
                     : v.isBoolList()                               ? "bool"
                     : element->kind() == c10::TypeKind::StringType ? "std::string"
                                                                    : nullptr;
  if (!type) return "scalars({" + inside + "})";
  return std::string("c10::List<") + type + ">(" + (inside.empty() ? "" : "{" + inside + "}") + ")";
}

std::optional<std::string> ValueText::value(const c10::IValue& v, const std::string& schema_type,
                                            const std::string& name) {
  if (v.isNone()) return is_.none;
  if (v.isTensor()) return tensor(v.toTensor(), name);
  if (v.isBool()) return v.toBool() ? is_.yes : is_.no;
  if (v.isInt()) return integer(v.toInt(), schema_type);
  if (v.isDouble()) return real(v.toDouble());
  if (v.isComplexDouble()) {
    const c10::complex<double> z = v.toComplexDouble();
    return (is_.python ? "complex(" : "c10::complex<double>(") + real(z.real()) + ", " + real(z.imag()) + ")";
  }
  if (v.isString()) {
    const std::string quoted = nlohmann::json(v.toStringRef()).dump();
    return is_.python ? quoted : "std::string(" + quoted + ")";
  }
  if (v.isDevice()) return is_.device;
  if (v.isList()) return list(v, schema_type, name);
  return std::nullopt;
}

std::optional<std::string> ValueText::argument(const c10::IValue& v, const c10::Argument& argument,
                                               const std::string& name) {
  const auto& type = argument.real_type();
  return value(v, type ? type->repr_str() : "", name);
}

/// A tensor without gaps, in the order of its elements: as numbers if these give the same bits, otherwise as
/// bytes.
std::optional<std::string> ValueText::contiguous(const at::Tensor& t, const std::string& name) {
  if (t.is_complex()) {
    const auto parts = contiguous(at::view_as_real(t), name);
    return parts ? std::optional(is_.space + ("view_as_complex(" + *parts) + ")") : std::nullopt;
  }
  if (!dtype_of(t.scalar_type())) return std::nullopt;
  const std::string rest = ", " + is_.type(t.scalar_type()) + ", " + shape(t.sizes()) + ")";
  if (t.numel() > kInlineElements) {
    store_.add(name, t);
    return "stored(\"" + name + "\"" + rest;
  }
  const auto elements = numbers_of(t, [&](double x) { return real(x); });
  if (elements) return std::string("numbers(") + is_.open + *elements + is_.close + rest;
  return "bits(\"" + hex_of(t) + "\"" + rest;
}

std::optional<std::string> ValueText::tensor(const at::Tensor& t, const std::string& name) {
  if (!t.defined()) return is_.none;
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) {
    const at::Scalar number = t.item();
    const auto text = value(c10::IValue(number), "", name);
    return is_.python || !text ? text : "number(" + *text + ")";
  }
  const at::Tensor raw = without_flags(t);
  std::optional<std::string> text;
  if (const auto memory = shared_.find(raw.storage().unsafeGetStorageImpl()); memory != shared_.end()) {
    const SharedMemory& m = memory->second;
    text = m.name;
    if (m.elements.scalar_type() != raw.scalar_type()) *text += ".view(" + is_.type(raw.scalar_type()) + ")";
    const std::int64_t offset =
        raw.storage_offset() - m.begin / static_cast<std::int64_t>(raw.element_size());
    *text += ".as_strided(" + shape(raw.sizes()) + ", " + shape(raw.strides()) + ", " +
             std::to_string(offset) + ")";
  } else {
    const MemoryLayout layout = layout_of(raw);
    text = contiguous(layout.elements.contiguous(), name);
    if (!text) return std::nullopt;
    if (layout.kind == MemoryLayout::Kind::strided)
      text = "strided(" + *text + ", " + shape(layout.strides) + ")";
    if (layout.kind == MemoryLayout::Kind::overlapping)
      *text += ".as_strided(" + shape(raw.sizes()) + ", " + shape(raw.strides()) + ", 0)";
    if (layout.expanded) *text += ".expand(" + shape(raw.sizes()) + ")";
  }
  if (t.is_conj()) *text += ".conj()";
  if (t.is_neg()) *text += "._neg_view()";
  return text;
}

}  // namespace nanquest
