#include "replay/trace/fsdp_copies.h"

#include <ATen/ATen.h>

#include "probe/base/one_of.h"
#include "probe/trace/argument_tree.h"

namespace nanquest::trace {
namespace {

std::vector<at::Tensor> tensors_of(const ArgumentTree& list,
                                   const std::function<at::Tensor(TensorId)>& value) {
  std::vector<at::Tensor> tensors;
  for (const ArgumentTree& element : list.elements) {
    tensors.push_back(element.row->kind == ArgKind::tensor ? value(TensorId{element.row->tensor})
                                                           : at::Tensor());
    if (!tensors.back().defined()) return {};
  }
  return tensors;
}

std::vector<std::int64_t> sizes_of(const ArgumentTree& list) {
  std::vector<std::int64_t> sizes;
  for (const ArgumentTree& element : list.elements) sizes.push_back(element.row->integer);
  return sizes;
}

}  // namespace

bool is_fsdp_copy(const OpRow& op) {
  return is_one_of(op.name, {"fsdp::all_gather_copy_in", "fsdp::split_with_sizes_copy", "fsdp::chunk_cat",
                             "fsdp::chunk_cat_mixed_dtype"});
}

void copy_as_fsdp(const SnapshotDoc& doc, const OpRow& op, const std::function<at::Tensor(TensorId)>& value,
                  std::vector<at::Tensor>& written) {
  const std::vector<ArgumentTree> arguments = argument_trees(doc, op);
  const auto is = [&](std::size_t i, ArgKind kind) {
    return i < arguments.size() && arguments[i].row->kind == kind;
  };
  if (written.empty() || !written.front().defined()) return;
  if (op.name == "fsdp::all_gather_copy_in") {
    // (inputs, output, sizes, numel, rank): the inputs into this rank's part of the output
    if (!is(0, ArgKind::list) || !is(3, ArgKind::integer) || !is(4, ArgKind::integer)) return;
    const std::vector<at::Tensor> inputs = tensors_of(arguments[0], value);
    const std::int64_t count = arguments[3].row->integer, rank = arguments[4].row->integer;
    if (inputs.empty()) return;
    std::vector<at::Tensor> flat;
    flat.reserve(inputs.size());
    for (const at::Tensor& input : inputs)
      flat.push_back(input.reshape({-1}).to(written.front().scalar_type()));
    written.front().view({-1}).narrow(0, rank * count, count).copy_(at::cat(flat));
  } else if (op.name == "fsdp::split_with_sizes_copy") {
    // (input, sizes, dim, out)
    if (!is(0, ArgKind::tensor) || !is(1, ArgKind::list) || !is(2, ArgKind::integer)) return;
    const at::Tensor input = value(TensorId{arguments[0].row->tensor});
    if (!input.defined()) return;
    const std::vector<at::Tensor> parts =
        at::split_with_sizes(input, sizes_of(arguments[1]), arguments[2].row->integer);
    for (std::size_t i = 0; i < parts.size() && i < written.size(); ++i)
      if (written[i].defined()) written[i].copy_(parts[i].reshape(written[i].sizes()));
  } else {
    // (tensors, dim, chunks, out)
    if (!is(0, ArgKind::list) || !is(1, ArgKind::integer) || !is(2, ArgKind::integer)) return;
    std::vector<at::Tensor> inputs = tensors_of(arguments[0], value);
    if (inputs.empty()) return;
    for (at::Tensor& input : inputs) input = input.to(written.front().scalar_type());
    written.front().copy_(at::_chunk_cat(inputs, arguments[1].row->integer, arguments[2].row->integer)
                              .reshape(written.front().sizes()));
  }
}

}  // namespace nanquest::trace
