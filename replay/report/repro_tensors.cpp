#include "replay/report/repro_tensors.h"

#include <ATen/ATen.h>
#include <ATen/TensorUtils.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe/snapshot/safetensors.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/case/values.h"

namespace nanquest {

std::string shortest(double value, const std::function<bool(double)>& same) {
  char text[40];
  int digits = 1;
  for (; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (same(std::strtod(text, nullptr))) break;
  }
  // "10.0" reads better than "1e+01".
  const double size = std::abs(value);
  for (; size >= 1 && size < 1e6 && std::strchr(text, 'e'); ++digits)
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strpbrk(text, ".e") ? text : std::string(text) + ".0";
}

std::optional<std::string> numbers_of(const at::Tensor& tensor,
                                      const std::function<std::string(double)>& text) {
  const at::Tensor doubles = tensor.to(at::kDouble), flat = tensor.view({-1});
  std::string all;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const at::Tensor element = flat[i];
    const auto same_bits = [&](double x) {
      const at::Tensor made = at::scalar_tensor(x, at::kDouble).to(tensor.scalar_type());
      return std::memcmp(made.const_data_ptr(), element.const_data_ptr(), element.nbytes()) == 0;
    };
    double x = doubles.const_data_ptr<double>()[i];
    if (std::isnan(x)) x = std::copysign(std::nan(""), x);  // the number that the text stands for
    if (!same_bits(x)) return std::nullopt;
    std::string one = std::isfinite(x) ? shortest(x, same_bits) : text(x);
    if (!tensor.is_floating_point()) one = std::to_string(static_cast<std::int64_t>(x));
    all += (i ? ", " : "") + one;
  }
  return all;
}

std::string hex_of(const at::Tensor& tensor) {
  std::string text;
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  char pair[3];
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

at::Tensor without_flags(at::Tensor tensor) {
  if (tensor.is_conj()) tensor = tensor.conj();
  if (tensor.is_neg()) tensor = tensor._neg_view();
  return tensor;
}

/// True if no two elements share a place, as far as sorted strides can show.
static bool apart(const at::Tensor& t) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1) dimensions.emplace_back(t.stride(d), t.size(d));
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t reach = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride < reach) return false;
    reach += (size - 1) * stride;
  }
  return true;
}

MemoryLayout layout_of(const at::Tensor& tensor) {
  MemoryLayout layout;
  layout.elements = unexpanded(tensor);
  layout.expanded = layout.elements.sizes() != tensor.sizes();
  const at::Tensor& t = layout.elements;
  if (t.numel() == 0) {
    layout.elements = at::empty(tensor.sizes(), tensor.options());
    layout.expanded = false;
  } else if (!apart(t)) {
    std::int64_t reach = 1;
    for (std::int64_t d = 0; d < t.dim(); ++d) reach += (t.size(d) - 1) * t.stride(d);
    layout.kind = MemoryLayout::Kind::overlapping;
    layout.elements = t.as_strided({reach}, {1});
    layout.expanded = false;
  } else {
    // Strides of dimensions of one element matter to kernels that check the order of channels.
    const bool plain =
        layout.expanded ? t.is_contiguous() : t.strides() == at::detail::defaultStrides(t.sizes());
    layout.kind = plain ? MemoryLayout::Kind::plain : MemoryLayout::Kind::strided;
    layout.strides = t.strides().vec();
  }
  return layout;
}

static constexpr const char* kSafetensorsTypes[kDTypeCount] = {
    "F64", "F32", "F16",  "BF16", "F8_E4M3", "F8_E5M2", "I64", "I32", "I16",
    "I8",  "U8",  "BOOL", "C64",  "C128",    "U16",     "U32", "U64"};

void TensorStore::add(const std::string& name, const at::Tensor& tensor) {
  for (const auto& [known, t] : tensors_)
    if (known == name) return;
  tensors_.emplace_back(name, tensor);
}

std::string TensorStore::file() const {
  if (tensors_.empty()) return "";
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, t] : tensors_)
    entries.push_back(
        {name, kSafetensorsTypes[dtype_index(*dtype_of(t.scalar_type()))], t.sizes().vec(), t.nbytes()});
  std::string bytes = safetensors_head(entries, {});
  for (const auto& [name, t] : tensors_)
    bytes.append(static_cast<const char*>(t.const_data_ptr()), t.nbytes());
  return bytes;
}

}  // namespace nanquest
