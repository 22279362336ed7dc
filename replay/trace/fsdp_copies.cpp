#include "replay/trace/fsdp_copies.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "probe/trace/argument_tree.h"
#include "probe/trace/op_facts.h"

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

/// Copies this rank's part into the buffer of a gather.
at::Tensor copy_in(at::TensorList inputs, const at::Tensor& buffer, std::int64_t count, std::int64_t rank) {
  at::Tensor part = buffer.view({-1}).narrow(0, rank * count, count);
  std::int64_t from = 0;
  for (const at::Tensor& input : inputs) {
    part.narrow(0, from, input.numel()).view(input.sizes()).copy_(input);
    from += input.numel();
  }
  return part;
}

/// Splits what was gathered.
void split_copy(const at::Tensor& gathered, at::IntArrayRef sizes, std::int64_t dim, at::TensorList out) {
  const std::vector<at::Tensor> parts = at::split_with_sizes(gathered, sizes, dim);
  for (std::size_t i = 0; i < parts.size() && i < out.size(); ++i)
    if (out[i].defined()) out[i].copy_(parts[i].reshape(out[i].sizes()));
}

/// What each rank contributes to a reduction, one after the other.
void chunk_cat(at::TensorList tensors, std::int64_t dim, std::int64_t chunks, const at::Tensor& out) {
  std::vector<at::Tensor> inputs = tensors.vec();
  for (at::Tensor& input : inputs) input = input.to(out.scalar_type());
  out.copy_(at::_chunk_cat(inputs, dim, chunks).reshape(out.sizes()));
}

std::tuple<at::Tensor, at::Tensor> all_gather_copy_in(at::TensorList inputs, const at::Tensor& buffer,
                                                      at::IntArrayRef, std::int64_t count,
                                                      std::int64_t rank) {
  return {copy_in(inputs, buffer, count, rank), buffer};
}

/// Operators that this process lacked and that were defined here.
struct Defined {
  std::unique_ptr<torch::Library> library;
  std::set<std::string> ops;
};

Defined define() {
  Defined made{std::make_unique<torch::Library>(torch::Library::FRAGMENT, "fsdp", std::nullopt, __FILE__,
                                                static_cast<std::uint32_t>(__LINE__)),
               {}};
  const auto add = [&](const std::string& name, const std::string& rest, auto kernel) {
    if (c10::Dispatcher::singleton().findSchema({"fsdp::" + name, ""})) return;
    made.library->def((name + rest).c_str());
    made.library->impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel));
    made.ops.insert("fsdp::" + name);
  };
  add("all_gather_copy_in",
      "(Tensor[] all_gather_inputs, Tensor all_gather_output, int[] inp_split_sizes, "
      "int all_gather_input_numel, int rank) -> (Tensor, Tensor)",
      all_gather_copy_in);
  add("split_with_sizes_copy",
      "(Tensor all_gather_output, int[] all_gather_input_split_sizes, int dim=0, *, Tensor(a!)[] out) -> ()",
      split_copy);
  for (const char* const name : {"chunk_cat", "chunk_cat_mixed_dtype"})
    add(name, "(Tensor[] tensors, int dim, int num_chunks, *, Tensor(a!) out) -> ()", chunk_cat);
  return made;
}

const Defined& defined() {
  static const Defined made = define();
  return made;
}

}  // namespace

void define_fsdp_copies() {
  (void)defined();
}

bool is_kept_copy(const OpRow& op) {
  // For other operators nothing is defined: PyTorch does it, where Python is.
  return is_fsdp_copy(op.name) && !op.host_data.empty() && defined().ops.count(op.name) > 0;
}

void copy_as_fsdp(const SnapshotDoc& doc, const OpRow& op, const std::function<at::Tensor(TensorId)>& value,
                  std::vector<at::Tensor>& written) {
  const std::vector<ArgumentTree> arguments = argument_trees(doc, op);
  const auto is = [&](std::size_t i, ArgKind kind) {
    return i < arguments.size() && arguments[i].row->kind == kind;
  };
  if (written.empty() || !written.front().defined()) return;
  if (op.name == "fsdp::all_gather_copy_in") {
    // (inputs, output, sizes, numel, rank)
    if (!is(0, ArgKind::list) || !is(3, ArgKind::integer) || !is(4, ArgKind::integer)) return;
    copy_in(tensors_of(arguments[0], value), written.front(), arguments[3].row->integer,
            arguments[4].row->integer);
  } else if (op.name == "fsdp::split_with_sizes_copy") {
    // (input, sizes, dim, out)
    if (!is(0, ArgKind::tensor) || !is(1, ArgKind::list) || !is(2, ArgKind::integer)) return;
    const at::Tensor gathered = value(TensorId{arguments[0].row->tensor});
    if (gathered.defined()) split_copy(gathered, sizes_of(arguments[1]), arguments[2].row->integer, written);
  } else {
    // (tensors, dim, chunks, out)
    if (!is(0, ArgKind::list) || !is(1, ArgKind::integer) || !is(2, ArgKind::integer)) return;
    if (const std::vector<at::Tensor> inputs = tensors_of(arguments[0], value); !inputs.empty())
      chunk_cat(inputs, arguments[1].row->integer, arguments[2].row->integer, written.front());
  }
}

}  // namespace nanquest::trace
