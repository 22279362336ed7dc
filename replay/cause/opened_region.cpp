#include "replay/cause/opened_region.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "probe/numerics/format.h"
#include "probe/observe/module_scope.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/case/values.h"
#include "replay/cause/record_parts.h"
#include "replay/lab/lab.h"

namespace nanquest {
namespace {

/// Separates the number of a node from its module, in the module paths of the recording.
constexpr char kAfterNumber = '|';

/// The path of a module inside the region, which ran in `outer`. A model itself is called by the name of its
/// type, which is not part of its modules' paths.
std::string path_inside(const Case& c, const std::string& outer, const std::string& inner) {
  if (inner.empty()) return outer;
  const auto& modules = c.doc().modules;
  const bool whole = std::any_of(modules.begin(), modules.end(), [&](const ModuleRow& row) {
    return row.path == outer && row.type == outer;
  });
  return whole || outer.empty() ? inner : outer + "." + inner;
}

/// Copies of the region's inputs, as they were then, by the names of their memory.
NamedTensors inputs_of(const Case& c, const RegionCall& call) {
  const Checkpoint before = c.lab()->replayer().checkpoint(c.op_index());
  NamedTensors inputs;
  for (const TraceGraph::Argument& argument : c.graph().arguments(OpId{c.op_index()})) {
    if (inputs.size() == call.tensors) break;
    const std::string name = c.slot_text(c.graph().slot(argument.row).row());
    inputs.emplace_back(name, before.value(argument.row.row()).detach().clone());
  }
  return inputs;
}

/// Modules and stacks of the recording become those of the graph: paths begin with the number of their node.
void name_ops(const Case& c, const RegionGraph& graph, SnapshotDoc& doc) {
  const std::string outer = c.module_of(c.op_index());
  const auto first = static_cast<std::int32_t>(doc.stacks.size());
  doc.stacks.insert(doc.stacks.end(), graph.stacks().begin(), graph.stacks().end());
  std::vector<std::int32_t> stacks(doc.modules.size(), kNone);
  std::vector<bool> derivative(doc.modules.size());
  for (std::size_t row = 0; row < doc.modules.size(); ++row) {
    std::string& path = doc.modules[row].path;
    const std::size_t bar = path.find(kAfterNumber);
    if (bar == std::string::npos) continue;
    const RegionNode& node = graph.nodes().at(std::stoul(path.substr(0, bar)));
    path = path_inside(c, outer, node.module);
    if (node.stack >= 0) stacks[row] = first + node.stack;
    derivative[row] = node.derivative;
  }
  for (OpRow& op : doc.ops) {
    if (c.op()->phase == Phase::optimizer) op.phase = Phase::optimizer;
    if (op.module == kNone) continue;
    const auto row = static_cast<std::size_t>(op.module);
    op.stack = stacks.at(row);
    if (derivative.at(row)) op.node = kCompiledDerivative;
  }
}

/// While it exists, ops belong to the node that was entered last.
struct InNode {
  InNode() { push_module("", ""); }
  ~InNode() { pop_module(); }
  InNode(const InNode&) = delete;
  InNode& operator=(const InNode&) = delete;
  static void enter(const RegionNode& node) {
    pop_module();
    push_module(std::to_string(node.number) + kAfterNumber + node.module, node.module_type);
  }
};

/// The graph's results and, after these, those of `given` that it writes, in the order in which the region's
/// were recorded.
std::vector<at::Tensor> tensors_of(const RegionGraph& graph, const std::vector<at::Tensor>& given,
                                   const RegionCall& call,
                                   const std::function<void(const RegionNode&)>& before = {},
                                   std::set<std::string>* stood_in = nullptr) {
  std::vector<at::Tensor> outputs = graph.run(
      given, call.sizes,
      [&](const RegionNode& node) {
        if (before) before(node);
      },
      stood_in);
  std::erase_if(outputs, [](const at::Tensor& t) { return !t.defined(); });
  for (const std::int64_t place : call.written) outputs.push_back(given.at(static_cast<std::size_t>(place)));
  return outputs;
}

/// Infinities that an output holds for any floating-point inputs of the region: a mask, for example, that it
/// keeps for its backward. One boolean tensor per output, undefined if there are none.
std::vector<at::Tensor> meant_infinities(const RegionGraph& graph, const NamedTensors& given,
                                         const RegionCall& call, const std::vector<at::Tensor>& recorded) {
  std::vector<at::Tensor> meant(recorded.size()), poisoned, outputs;
  const auto infinite = [](const at::Tensor& t) {
    return t.defined() && t.is_floating_point() && t.isinf().any().item<bool>();
  };
  if (std::none_of(recorded.begin(), recorded.end(), infinite)) return meant;
  for (const auto& [name, tensor] : given)
    poisoned.push_back(tensor.is_floating_point() && c10::elementSize(tensor.scalar_type()) > 1
                           ? tensor.masked_fill(tensor.isfinite(), std::nan(""))
                           : tensor.clone());
  try {
    outputs = tensors_of(graph, poisoned, call);
  } catch (const std::exception&) {  // one of its operators raises an error for NaN: nothing is known
    return meant;
  }
  for (std::size_t i = 0; i < recorded.size() && i < outputs.size(); ++i)
    if (infinite(recorded[i]) && recorded[i].sizes() == outputs[i].sizes())
      meant[i] = recorded[i].isinf().logical_and(recorded[i].eq(outputs[i]));
  return meant;
}

bool has_nan(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && t.isnan().any().item<bool>();
}

/// `output` with zeros in place of intended infinities.
at::Tensor without(const at::Tensor& output, const at::Tensor& meant) {
  return meant.defined() && output.defined() ? output.masked_fill(meant, 0) : output;
}

/// True if a value on the way is so near the limit of its format that it matters whether it was rounded once
/// or after each operator.
bool nears_the_end_of_a_format(const SnapshotDoc& doc) {
  constexpr double kNear = 0.9;
  return std::any_of(doc.tensors.begin(), doc.tensors.end(), [&](const TensorRow& row) {
    const StatsRow* stats = find_row(doc, StatsId{row.stats});
    const auto format = format_of(row.dtype);
    return stats && format && stats->amax >= kNear * info(*format).max_finite;
  });
}

/// Copies of the region's inputs, each number moved to a neighbour.
std::vector<at::Tensor> neighbours(const NamedTensors& given) {
  std::vector<at::Tensor> moved;
  for (const auto& [name, tensor] : given) {
    at::Tensor copy = tensor.clone();
    const auto type = dtype_of(copy.scalar_type());
    const auto format = type ? format_of(*type) : std::nullopt;
    if (format && copy.is_floating_point() && c10::elementSize(copy.scalar_type()) > 1) {
      const double step = std::ldexp(1.0, -info(*format).mantissa_bits);
      const at::Tensor signs = at::randint(0, 2, copy.sizes(), at::kDouble).mul_(2 * step).sub_(step);
      copy.copy_(copy.to(at::kDouble).mul(signs.to(copy.device()).add_(1)));
    }
    moved.push_back(std::move(copy));
  }
  return moved;
}

/// True if the operators one by one go bad as well once their inputs are changed in the last bit: then
/// rounding decides, and compiled code may round in another way.
bool hangs_on_a_last_bit(const Case& c, const RegionGraph& graph, const OpenedRegion& opened) {
  constexpr int kTrials = 8;
  const RegionCall call = region_call(c.doc(), *c.op());
  const NamedTensors given = inputs_of(c, call);
  for (int trial = 0; trial < kTrials && c.has_time(); ++trial) {
    const std::vector<at::Tensor> outputs = tensors_of(graph, neighbours(given), call);
    for (std::size_t i = 0; i < outputs.size() && i < opened.recorded.size(); ++i)
      if (opened.recorded[i].defined() && !all_finite(opened.recorded[i]) &&
          !all_finite(without(outputs[i], opened.meant[i])))
        return true;
  }
  return false;
}

}  // namespace

OpenedRegion open_region_of(const Case& c, const RegionGraph& graph) {
  const RegionCall call = region_call(c.doc(), *c.op());
  OpenedRegion opened;
  opened.recorded = c.values(c.op_index()).outputs;
  const NamedTensors inputs = inputs_of(c, call);
  std::vector<at::Tensor> tensors;
  opened.meant = meant_infinities(graph, inputs, call, opened.recorded);
  for (std::size_t i = 0; i < opened.recorded.size(); ++i)
    opened.recorded[i] = without(opened.recorded[i], opened.meant[i]);
  for (const auto& [name, tensor] : inputs) tensors.push_back(tensor);
  Parts parts;
  parts.given = inputs;
  std::vector<at::Tensor> places(opened.recorded.size());
  const bool any_nan = std::any_of(opened.recorded.begin(), opened.recorded.end(), has_nan);
  for (std::size_t i = 0; i < places.size(); ++i) {
    // Outputs that were finite are no harm, whatever its operators give. If some hold NaN, an infinity alone
    // may be what the program masked, kept for backward (the maximum of a softmax's row).
    if (!opened.recorded[i].defined() || all_finite(opened.recorded[i])) continue;
    if (any_nan && !has_nan(opened.recorded[i])) continue;
    places[i] = at::zeros_like(opened.recorded[i]);
    parts.results.emplace_back("output " + std::to_string(i), places[i]);
  }
  parts.run = [&] {
    const InNode in_node;
    std::vector<at::Tensor> outputs = tensors_of(
        graph, tensors, call,
        [&](const RegionNode& node) {
          if (!c.has_time()) throw std::runtime_error("there is no time left (more: --budget SECONDS)");
          InNode::enter(node);
        },
        &opened.stood_in);
    if (outputs.size() != places.size()) throw std::runtime_error("it gives another number of tensors");
    for (std::size_t i = 0; i < places.size(); ++i) {
      outputs[i] = without(outputs[i], opened.meant[i]);
      if (places[i].defined()) places[i].copy_(outputs[i]);
    }
    opened.outputs = std::move(outputs);
  };
  opened.recording = record_parts(parts);
  if (!opened.recording.failure.empty()) throw std::runtime_error(opened.recording.failure);
  name_ops(c, graph, opened.recording.doc);
  return opened;
}

double furthest(const OpenedRegion& opened) {
  double worst = 0;
  for (std::size_t i = 0; i < opened.outputs.size() && i < opened.recorded.size(); ++i) {
    const at::Tensor &a = opened.recorded[i], &b = opened.outputs[i];
    if (!a.defined() || !a.is_floating_point() || a.sizes() != b.sizes() || a.numel() == 0) continue;
    const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    const at::Tensor both = x.isfinite().logical_and(y.isfinite());
    const double largest = y.abs().where(both, at::zeros({}, at::kDouble)).max().item<double>();
    const double off = (x - y).abs().where(both, at::zeros({}, at::kDouble)).max().item<double>();
    if (largest > 0) worst = std::max(worst, off / largest);
  }
  return worst;
}

bool goes_bad_alike(const OpenedRegion& opened) {
  for (std::size_t i = 0; i < opened.recorded.size(); ++i) {
    const at::Tensor &a = opened.recorded[i], &b = opened.outputs[i];
    if (!a.defined() || all_finite(a)) continue;
    if (a.sizes() != b.sizes()) return false;
    if (100 * a.isfinite().ne(b.isfinite()).sum().item<std::int64_t>() > a.numel()) return false;
  }
  return true;
}

bool rounding_decides(const Case& c, const RegionGraph& graph, const OpenedRegion& opened) {
  return nears_the_end_of_a_format(opened.recording.doc) || hangs_on_a_last_bit(c, graph, opened);
}

}  // namespace nanquest
