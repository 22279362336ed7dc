#include "replay/lab/region_values.h"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

namespace nanquest::region {
namespace {

using c10::TypeKind;

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("the graph of the region: " + what);
}

std::int64_t layout_named(const std::string& name) {
  if (name != "strided") refuse("tensors of layout " + name.substr(0, 40) + " can't be made here");
  return static_cast<std::int64_t>(c10::Layout::Strided);
}

std::int64_t memory_format_named(const std::string& name) {
  static const std::map<std::string, c10::MemoryFormat> names = {
      {"contiguous_format", c10::MemoryFormat::Contiguous},
      {"preserve_format", c10::MemoryFormat::Preserve},
      {"channels_last", c10::MemoryFormat::ChannelsLast},
      {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}};
  const auto found = names.find(name);
  if (found == names.end()) refuse("no memory format is called " + name.substr(0, 40));
  return static_cast<std::int64_t>(found->second);
}

double real(const Json& j) {
  if (j.is_number()) return j.get<double>();
  if (j.is_object() && j.contains("number")) {
    const auto word = j.at("number").get<std::string>();
    const double infinity = std::numeric_limits<double>::infinity();
    return word == "inf" ? infinity : word == "-inf" ? -infinity : std::nan("");
  }
  refuse("a number was expected");
}

/// A reference gives what it names; a number of the JSON gives one of its kind.
c10::IValue number(const Json& j, const std::vector<Results>& values) {
  if (is_reference(j)) return referred(j, values);
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<std::int64_t>();
  return real(j);
}

std::int64_t integer(const Json& j, const std::vector<Results>& values) {
  if (j.is_object()) {
    if (j.contains("dtype")) return static_cast<std::int64_t>(type_named(j.at("dtype").get<std::string>()));
    if (j.contains("layout")) return layout_named(j.at("layout").get<std::string>());
    if (j.contains("memory_format")) return memory_format_named(j.at("memory_format").get<std::string>());
  }
  const c10::IValue value = number(j, values);
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool() ? 1 : 0;
  refuse("an integer was expected");
}

at::Tensor tensor(const Json& j, const std::vector<Results>& values) {
  const c10::IValue value = number(j, values);
  if (value.isTensor()) return value.toTensor();
  if (!value.isScalar()) refuse("a tensor was expected");
  at::Tensor wrapped = c10::scalar_to_tensor(value.toScalar());
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

/// Length of a list whose only element may be given as one number: `int[2] stride`.
std::size_t length_of(const Json& j, const c10::Argument& wanted) {
  return j.is_array() ? j.size() : static_cast<std::size_t>(std::clamp(wanted.N().value_or(1), 1, 8));
}

c10::IValue list(const Json& j, const c10::Argument& wanted, const c10::TypePtr& element,
                 const std::vector<Results>& values) {
  const std::size_t n = length_of(j, wanted);
  const auto at = [&](std::size_t i) -> const Json& { return j.is_array() ? j.at(i) : j; };
  const auto filled = [&](auto made, const auto& value) {
    made.reserve(n);
    for (std::size_t i = 0; i < n; ++i) made.push_back(value(at(i)));
    return c10::IValue(std::move(made));
  };
  switch (element->kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return filled(c10::List<std::int64_t>(), [&](const Json& e) { return integer(e, values); });
    case TypeKind::FloatType:
      return filled(c10::List<double>(),
                    [&](const Json& e) { return number(e, values).toScalar().toDouble(); });
    case TypeKind::BoolType:
      return filled(c10::List<bool>(), [&](const Json& e) { return number(e, values).toScalar().toBool(); });
    case TypeKind::TensorType:
      return filled(c10::List<at::Tensor>(), [&](const Json& e) { return tensor(e, values); });
    case TypeKind::OptionalType:
      return filled(c10::List<std::optional<at::Tensor>>(), [&](const Json& e) {
        return e.is_null() ? std::optional<at::Tensor>() : std::optional(tensor(e, values));
      });
    default: {
      if (element->kind() != TypeKind::NumberType)
        refuse("a list of " + element->str() + " can't be made here");
      c10::List<c10::IValue> made(element);
      for (std::size_t i = 0; i < n; ++i) made.push_back(number(at(i), values));
      return made;
    }
  }
}

c10::IValue converted(const Json& j, const c10::Argument& wanted, const c10::TypePtr& type,
                      const std::vector<Results>& values) {
  switch (type->kind()) {
    case TypeKind::OptionalType:
      if (j.is_null()) return {};
      return converted(j, wanted, type->expectRef<c10::OptionalType>().getElementType(), values);
    case TypeKind::TensorType:  // Python's None is an undefined tensor, even if the schema has no optional
                                // one
      return j.is_null() ? at::Tensor() : tensor(j, values);
    case TypeKind::ListType:
      return list(j, wanted, type->expectRef<c10::ListType>().getElementType(), values);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return integer(j, values);
    case TypeKind::FloatType:
      return number(j, values).toScalar().toDouble();
    case TypeKind::BoolType:
      return number(j, values).toScalar().toBool();
    case TypeKind::NumberType:
      return number(j, values);
    case TypeKind::StringType:
      return j.get<std::string>();
    case TypeKind::DeviceObjType:
      return c10::Device(j.at("device").get<std::string>());
    default:
      break;
  }
  if (j.is_null()) return {};  // generators and the like
  refuse("an argument of type " + type->str() + " can't be made here");
}

}  // namespace

at::ScalarType type_named(const std::string& name) {
  const auto& names = c10::getStringToDtypeMap();
  const auto found = names.find(name);
  if (found == names.end()) refuse("no number format is called " + name.substr(0, 40));
  return found->second;
}

bool is_reference(const Json& j) {
  return j.is_object() && j.contains("value");
}

const c10::IValue& referred(const Json& j, const std::vector<Results>& values) {
  const auto index = j.at("value").get<std::size_t>();
  const std::size_t item = j.contains("item") ? j.at("item").get<std::size_t>() : 0;
  if (index >= values.size() || item >= values[index].size())
    refuse("it reads a value that it does not have");
  return values[index][item];
}

c10::IValue argument(const Json& j, const c10::Argument& wanted, const std::vector<Results>& values) {
  try {
    return converted(j, wanted, wanted.type(), values);
  } catch (const Json::exception&) {
    refuse("the argument " + wanted.name() + " has another form");
  }
}

c10::IValue arithmetic(const std::string& word, const Json& arguments, const std::vector<Results>& values) {
  const auto at = [&](std::size_t i) { return number(arguments.at(i), values).toScalar(); };
  const c10::Scalar a = at(0);
  if (word == "float") return a.toDouble();
  const bool whole = !a.isFloatingPoint() && (arguments.size() < 2 || !at(1).isFloatingPoint());
  if (word == "neg") return whole ? c10::IValue(-a.toLong()) : c10::IValue(-a.toDouble());
  const c10::Scalar b = at(1);
  const double x = a.toDouble(), y = b.toDouble();
  if (word == "truediv") return x / y;
  if (!whole) {
    if (word == "add") return x + y;
    if (word == "sub") return x - y;
    if (word == "mul") return x * y;
    if (word == "max") return std::max(x, y);
    if (word == "min") return std::min(x, y);
    refuse("sizes are not computed by " + word.substr(0, 40) + " here");
  }
  const std::int64_t i = a.toLong(), k = b.toLong();
  if (word == "add") return i + k;
  if (word == "sub") return i - k;
  if (word == "mul") return i * k;
  if (word == "max") return std::max(i, k);
  if (word == "min") return std::min(i, k);
  if (k == 0 || k == -1) refuse("a size is divided by " + std::to_string(k));
  const std::int64_t quotient = i / k - ((i % k != 0 && (i < 0) != (k < 0)) ? 1 : 0);  // Python rounds down
  if (word == "floordiv") return quotient;
  if (word == "mod") return i - quotient * k;
  refuse("sizes are not computed by " + word.substr(0, 40) + " here");
}

at::Tensor constant(const Json& j, c10::Device here) {
  const Json& told = j.at("tensor");
  const auto shape = told.at("shape").get<std::vector<std::int64_t>>();
  const at::ScalarType type = type_named(told.at("dtype").get<std::string>());
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  const bool whole = c10::isIntegralType(type, /*includeBool=*/true);
  for (const Json& value : told.at("values")) {
    if (whole)
      integers.push_back(value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<std::int64_t>());
    else
      reals.push_back(real(value));
  }
  const at::Tensor flat = whole ? at::tensor(integers, at::kLong) : at::tensor(reals, at::kDouble);
  const c10::Device device(told.at("device").get<std::string>());
  return flat.to(type).reshape(shape).to(device.is_cpu() ? device : here);
}

}  // namespace nanquest::region
