#include "probe/capture/arguments.h"

#include <ATen/core/Generator.h>

#include <mutex>
#include <set>
#include <string>

namespace nanquest {
namespace {

using OnTensor = std::function<std::int32_t(const at::Tensor&)>;

ArgRow token(ArgKind kind) {
  ArgRow row;
  row.kind = kind;
  return row;
}

ArgRow list_token(std::int64_t length, const char* element) {
  ArgRow row = token(ArgKind::list);
  row.integer = length;
  row.text = element;
  return row;
}

bool flatten_scalar(const c10::IValue& value, std::vector<ArgRow>& out) {
  ArgRow row;
  if (value.isInt() || value.isSymInt()) {
    row = token(ArgKind::integer);
    row.integer = value.isInt() ? value.toInt() : value.toSymInt().guard_int(__FILE__, __LINE__);
  } else if (value.isDouble()) {
    row = token(ArgKind::real);
    row.real = value.toDouble();
  } else if (value.isBool()) {
    row = token(ArgKind::boolean);
    row.integer = value.toBool() ? 1 : 0;
  } else if (value.isComplexDouble()) {
    row = token(ArgKind::complex);
    row.real = value.toComplexDouble().real();
    row.imaginary = value.toComplexDouble().imag();
  } else if (value.isString()) {
    row = token(ArgKind::string);
    row.text = value.toStringRef();
  } else if (value.isDevice()) {
    row = token(ArgKind::device);
    row.text = value.toDevice().str();
  } else if (value.isGenerator()) {
    row = token(ArgKind::generator);
    row.text = value.toGenerator().device().str();
  } else {
    return false;
  }
  out.push_back(std::move(row));
  return true;
}

}  // namespace

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

void flatten_argument(const c10::IValue& value, std::vector<ArgRow>& out, const OnTensor& on_tensor) {
  if (value.isNone()) {
    out.push_back(token(ArgKind::none));
  } else if (value.isTensor()) {
    ArgRow row = token(ArgKind::tensor);
    row.tensor = on_tensor(value.toTensor());
    out.push_back(std::move(row));
  } else if (flatten_scalar(value, out)) {
    return;
  } else if (value.isList()) {
    const auto list = value.toList();
    out.push_back(list_token(static_cast<std::int64_t>(list.size()), element_type(value)));
    for (std::size_t i = 0; i < list.size(); ++i) flatten_argument(list.get(i), out, on_tensor);
  } else if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    out.push_back(list_token(static_cast<std::int64_t>(elements.size()), kTupleType));
    for (const auto& element : elements) flatten_argument(element, out, on_tensor);
  } else {
    ArgRow row = token(ArgKind::opaque);
    row.text = value.tagKind();
    out.push_back(std::move(row));
  }
}

}  // namespace nanquest
