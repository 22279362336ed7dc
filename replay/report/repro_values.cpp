#include "replay/report/repro_values.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace nanquest {
namespace {

struct TypeName {
  at::ScalarType type;
  const char *torch, *safetensors, *cpp;
};
constexpr TypeName kTypes[] = {
    {at::kDouble, "float64", "F64", "at::kDouble"},
    {at::kFloat, "float32", "F32", "at::kFloat"},
    {at::kHalf, "float16", "F16", "at::kHalf"},
    {at::kBFloat16, "bfloat16", "BF16", "at::kBFloat16"},
    {at::kFloat8_e4m3fn, "float8_e4m3fn", "F8_E4M3", "at::kFloat8_e4m3fn"},
    {at::kFloat8_e5m2, "float8_e5m2", "F8_E5M2", "at::kFloat8_e5m2"},
    {at::kLong, "int64", "I64", "at::kLong"},
    {at::kInt, "int32", "I32", "at::kInt"},
    {at::kShort, "int16", "I16", "at::kShort"},
    {at::kChar, "int8", "I8", "at::kChar"},
    {at::kByte, "uint8", "U8", "at::kByte"},
    {at::kBool, "bool", "BOOL", "at::kBool"},
};

const TypeName* type_name(at::ScalarType type) {
  for (const TypeName& t : kTypes)
    if (t.type == type) return &t;
  return nullptr;
}

std::string hex(const at::Tensor& tensor) {
  std::string text;
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  char pair[3];
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

std::string list_text(at::IntArrayRef values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text;
}

std::string python_double(double x) {
  if (std::isnan(x)) return "float(\"nan\")";
  if (std::isinf(x)) return x > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return std::strpbrk(text, ".e") ? text : std::string(text) + ".0";
}

std::string cpp_double(double x) {
  if (std::isnan(x)) return "std::nan(\"\")";
  if (std::isinf(x)) return x > 0 ? "INFINITY" : "-INFINITY";
  return python_double(x);
}

at::Tensor plain(const at::Tensor& t) {
  return t.detach().to(at::kCPU).contiguous();
}

std::optional<std::string> python_tensor(const at::Tensor& given, TensorStore& store) {
  if (!given.defined()) return "None";
  const at::Tensor t = plain(given);
  const TypeName* type = type_name(t.scalar_type());
  if (!type) return std::nullopt;
  const std::string shape = "[" + list_text(t.sizes()) + "]";
  if (t.numel() == 0) return "torch.empty(" + shape + ", dtype=torch." + type->torch + ")";
  if (t.numel() > kInlineElements) return "stored(\"" + store.add(t) + "\")";
  return "bits(\"" + hex(t) + "\", torch." + std::string(type->torch) + ", " + shape + ")";
}

/// Enumerations are plain integers inside an IValue; only the schema tells.
std::optional<std::string> python_enum(std::int64_t value, const std::string& schema_type) {
  if (schema_type.find("ScalarType") != std::string::npos) {
    const TypeName* type = type_name(static_cast<at::ScalarType>(value));
    return type ? std::optional<std::string>("torch." + std::string(type->torch)) : std::nullopt;
  }
  if (schema_type.find("Layout") != std::string::npos) return "torch.strided";
  if (schema_type.find("MemoryFormat") != std::string::npos)
    return value == 1   ? "torch.preserve_format"
           : value == 0 ? "torch.contiguous_format"
                        : "torch.channels_last";
  return std::to_string(value);
}

template <class List, class Text>
std::optional<std::string> joined(const List& list, const Text& text) {
  std::string all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<std::string> one = text(list[i]);
    if (!one) return std::nullopt;
    all += (i ? ", " : "") + *one;
  }
  return all;
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::optional<std::string> cpp_tensor(const at::Tensor& given, const TensorStore& store, int& next) {
  if (!given.defined()) return "at::Tensor()";
  const at::Tensor t = plain(given);
  const TypeName* type = type_name(t.scalar_type());
  if (!type) return std::nullopt;
  const std::string shape = "{" + list_text(t.sizes()) + "}";
  if (t.numel() == 0) return "at::empty(" + shape + ", " + type->cpp + ")";
  if (t.numel() <= kInlineElements) return "bits(\"" + hex(t) + "\", " + type->cpp + ", " + shape + ")";
  const std::string name = "t" + std::to_string(next++);
  return "stored(" + std::to_string(store.offset(name)) + ", " + type->cpp + ", " + shape + ")";
}

}  // namespace

std::string TensorStore::add(const at::Tensor& tensor) {
  tensors_.emplace_back("t" + std::to_string(tensors_.size()), tensor);
  return tensors_.back().first;
}

std::string TensorStore::header() const {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  std::size_t offset = 0;
  for (const auto& [name, t] : tensors_) {
    j[name] = {{"dtype", type_name(t.scalar_type())->safetensors},
               {"shape", t.sizes().vec()},
               {"data_offsets", {offset, offset + t.nbytes()}}};
    offset += t.nbytes();
  }
  std::string text = j.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

std::size_t TensorStore::offset(const std::string& name) const {
  std::size_t at = 8 + header().size();
  for (const auto& [other, t] : tensors_) {
    if (other == name) return at;
    at += t.nbytes();
  }
  return at;
}

std::string TensorStore::file() const {
  if (tensors_.empty()) return "";
  const std::string text = header();
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  bytes += text;
  for (const auto& [name, t] : tensors_)
    bytes.append(static_cast<const char*>(t.const_data_ptr()), t.nbytes());
  return bytes;
}

std::optional<std::string> python_value(const c10::IValue& v, const c10::Argument& argument,
                                        TensorStore& store) {
  const auto type = argument.real_type();
  const std::string schema_type = type ? type->repr_str() : "";
  if (v.isNone()) return "None";
  if (v.isTensor()) return python_tensor(v.toTensor(), store);
  if (v.isBool()) return v.toBool() ? "True" : "False";
  if (v.isInt()) return python_enum(v.toInt(), schema_type);
  if (v.isDouble()) return python_double(v.toDouble());
  if (v.isString()) return quoted(v.toStringRef());
  if (v.isDevice()) return "torch.device(\"cpu\")";
  std::optional<std::string> inside;
  if (v.isIntList())
    inside = list_text(v.toIntVector());
  else if (v.isDoubleList())
    inside = joined(v.toDoubleVector(), [](double x) { return std::optional(python_double(x)); });
  else if (v.isTensorList())
    inside = joined(v.toTensorVector(), [&](const at::Tensor& t) { return python_tensor(t, store); });
  else if (v.isList())
    inside =
        joined(v.toListRef().vec(), [&](const c10::IValue& e) { return python_value(e, argument, store); });
  return inside ? std::optional<std::string>("[" + *inside + "]") : std::nullopt;
}

std::optional<std::string> cpp_value(const c10::IValue& v, const TensorStore& store, int& next) {
  if (v.isNone()) return "c10::IValue()";
  if (v.isTensor()) return cpp_tensor(v.toTensor(), store, next);
  if (v.isBool()) return v.toBool() ? "true" : "false";
  if (v.isInt()) return "std::int64_t{" + std::to_string(v.toInt()) + "}";
  if (v.isDouble()) return cpp_double(v.toDouble());
  if (v.isString()) return "std::string(" + quoted(v.toStringRef()) + ")";
  if (v.isDevice()) return "at::Device(at::kCPU)";
  if (v.isIntList()) return "c10::List<std::int64_t>({" + list_text(v.toIntVector()) + "})";
  std::optional<std::string> inside;
  if (v.isDoubleList()) {
    inside = joined(v.toDoubleVector(), [](double x) { return std::optional(cpp_double(x)); });
    return "c10::List<double>({" + *inside + "})";
  }
  if (v.isBoolList()) {
    inside = joined(v.toListRef().vec(), [&](const c10::IValue& e) { return cpp_value(e, store, next); });
    return "c10::List<bool>({" + *inside + "})";
  }
  if (v.isTensorList()) {
    inside = joined(v.toTensorVector(), [&](const at::Tensor& t) { return cpp_tensor(t, store, next); });
    return inside ? std::optional<std::string>("c10::List<at::Tensor>({" + *inside + "})") : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace nanquest
