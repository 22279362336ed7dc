#include "replay/lab/region_operators.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <map>
#include <stdexcept>

namespace nanquest::region {
namespace {

using Sizes = std::vector<std::int64_t>;

/// One tensor of coordinates for each of the `sizes`; the last one varies fastest.
std::vector<at::Tensor> coordinates(at::Tensor flat, const Sizes& sizes) {
  std::vector<at::Tensor> each(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    each[d] = flat.remainder(sizes[d]);
    flat = flat.floor_divide(sizes[d]);
  }
  return each;
}

at::Tensor flattened(const std::vector<at::Tensor>& coordinates, const Sizes& sizes) {
  at::Tensor flat = coordinates.at(0);
  for (std::size_t d = 1; d < sizes.size(); ++d) flat = flat * sizes[d] + coordinates.at(d);
  return flat;
}

/// The first coordinate along `axis` of each window of a pooling (whose results are shaped like `windows`).
at::Tensor window_begins(const at::Tensor& windows, std::size_t axis, std::size_t axes, std::int64_t stride,
                         std::int64_t padding) {
  Sizes shape(static_cast<std::size_t>(windows.dim()), 1);
  const std::size_t at = shape.size() - axes + axis;
  shape[at] = windows.size(static_cast<std::int64_t>(at));
  return at::arange(shape[at], windows.options().dtype(at::kLong)).view(shape) * stride - padding;
}

void check(const at::Tensor& t, std::initializer_list<const Sizes*> lists) {
  const std::size_t axes = (*lists.begin())->size();
  for (const Sizes* list : lists)
    if ((axes != 2 && axes != 3) || list->size() != axes || t.dim() < static_cast<std::int64_t>(axes))
      throw std::runtime_error("a pooling over other than two or three dimensions");
}

/// Maxima, and the position of each in its window.
Results max_pool(const std::vector<c10::IValue>& a) {
  const at::Tensor& self = a[0].toTensor();
  const Sizes kernel = a[1].toIntVector(), stride = a[2].toIntVector(), padding = a[3].toIntVector(),
              dilation = a[4].toIntVector();
  check(self, {&kernel, &stride, &padding, &dilation});
  const bool ceil = a[5].toBool();
  const auto [values, indices] =
      kernel.size() == 2 ? at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil)
                         : at::max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil);
  const auto axes = static_cast<std::int64_t>(kernel.size());
  std::vector<at::Tensor> inside = coordinates(indices, self.sizes().slice(self.dim() - axes, axes).vec());
  for (std::size_t d = 0; d < kernel.size(); ++d)
    inside[d] = (inside[d] - window_begins(indices, d, kernel.size(), stride[d], padding[d]))
                    .floor_divide(dilation[d]);
  return {values, flattened(inside, kernel).to(at::kChar)};
}

/// Such positions in windows as indices into the input.
Results indices_of_places(const std::vector<c10::IValue>& a) {
  const at::Tensor places = a[0].toTensor().to(at::kLong);
  const Sizes kernel = a[1].toIntVector(), input = a[2].toIntVector(), stride = a[3].toIntVector(),
              padding = a[4].toIntVector(), dilation = a[5].toIntVector();
  check(places, {&kernel, &input, &stride, &padding, &dilation});
  std::vector<at::Tensor> at_input = coordinates(places, kernel);
  for (std::size_t d = 0; d < kernel.size(); ++d)
    at_input[d] = at_input[d] * dilation[d] + window_begins(places, d, kernel.size(), stride[d], padding[d]);
  return {flattened(at_input, input)};
}

std::map<std::string, OwnOperator> all() {
  const std::string window = "int[] stride, int[] padding, int[] dilation";
  std::map<std::string, OwnOperator> found;
  const auto add = [&](const std::string& name, const std::string& arguments, auto* run) {
    found.emplace(name, OwnOperator{torch::jit::parseSchema(name + arguments), run});
  };
  add("prims::_low_memory_max_pool_with_offsets",
      "(Tensor self, int[] kernel_size, " + window + ", bool ceil_mode) -> (Tensor, Tensor)", max_pool);
  add("prims::_low_memory_max_pool_offsets_to_indices",
      "(Tensor self, int[] kernel_size, int[] input_size, " + window + ") -> Tensor", indices_of_places);
  return found;
}

}  // namespace

const OwnOperator* own_operator(const std::string& name) {
  static const std::map<std::string, OwnOperator> known = all();
  const auto found = known.find(name);
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace nanquest::region
