#include "replay/cause/region.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "probe/numerics/format.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/op_traits.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/regions.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/record_parts.h"
#include "replay/lab/lab.h"
#include "replay/lab/region_graph.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

/// Between the number of a node and its module, in the module paths of the recording.
constexpr char kAfterNumber = '|';

/// What one run of the region's operators on its recorded inputs gave.
struct Opened {
  Recording recording;
  std::vector<at::Tensor> outputs;   ///< one per recorded output
  std::vector<at::Tensor> recorded;  ///< what the compiled region gave
};

/// The path of a module inside the region, which ran in `outer`. A model itself is called by the name of its
/// type, which is no part of its modules' paths.
std::string path_inside(const Case& c, const std::string& outer, const std::string& inner) {
  if (inner.empty()) return outer;
  const auto& modules = c.doc().modules;
  const bool whole = std::any_of(modules.begin(), modules.end(), [&](const ModuleRow& row) {
    return row.path == outer && row.type == outer;
  });
  return whole || outer.empty() ? inner : outer + "." + inner;
}

/// Copies of what the region read, as it was then, by the names that its memory has.
NamedTensors inputs_of(const Case& c) {
  const Checkpoint before = c.lab()->replayer().checkpoint(c.op_index());
  NamedTensors inputs;
  for (const TraceGraph::Argument& argument : c.graph().arguments(OpId{c.op_index()})) {
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
  for (std::size_t row = 0; row < doc.modules.size(); ++row) {
    std::string& path = doc.modules[row].path;
    const std::size_t bar = path.find(kAfterNumber);
    if (bar == std::string::npos) continue;
    const RegionNode& node = graph.nodes().at(std::stoul(path.substr(0, bar)));
    path = path_inside(c, outer, node.module);
    if (node.stack >= 0) stacks[row] = first + node.stack;
  }
  for (OpRow& op : doc.ops)
    if (op.module != kNone) op.stack = stacks.at(static_cast<std::size_t>(op.module));
}

/// While it lives, ops belong to the node that was entered last.
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

/// Throws what the operators throw, and std::runtime_error where the file lacks something.
Opened open(const Case& c, const RegionGraph& graph, const RegionCall& call) {
  Opened opened;
  opened.recorded = c.values(c.op_index()).outputs;
  const NamedTensors inputs = inputs_of(c);
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : inputs) tensors.push_back(tensor);
  Parts parts;
  parts.given = inputs;
  std::vector<at::Tensor> places(opened.recorded.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    // What was well is no harm, whatever its operators give.
    if (!opened.recorded[i].defined() || all_finite(opened.recorded[i])) continue;
    places[i] = at::zeros_like(opened.recorded[i]);
    parts.results.emplace_back("output " + std::to_string(i), places[i]);
  }
  parts.run = [&] {
    const InNode in_node;
    std::vector<at::Tensor> outputs = graph.run(tensors, call.sizes, [&](const RegionNode& node) {
      if (!c.has_time()) throw std::runtime_error("there is no time left (more: --budget SECONDS)");
      InNode::enter(node);
    });
    std::erase_if(outputs, [](const at::Tensor& t) { return !t.defined(); });
    if (outputs.size() != places.size()) throw std::runtime_error("it gives another number of tensors");
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i].defined()) places[i].copy_(outputs[i]);
    opened.outputs = std::move(outputs);
  };
  opened.recording = record_parts(parts);
  if (!opened.recording.failure.empty()) throw std::runtime_error(opened.recording.failure);
  name_ops(c, graph, opened.recording.doc);
  return opened;
}

/// The largest difference between compiled and one by one, in parts of the largest value, over what both have
/// finite.
double furthest(const Opened& opened) {
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

const char* const kOneByOne = "the region's operators one by one";

void add_comparison(const Opened& opened, const RegionGraph& graph, Verdict& v) {
  if (graph.draws()) {
    v.not_tested.push_back(
        "that the region's operators one by one give what it gave: its kernels drew random numbers, which "
        "can't be drawn again");
    return;
  }
  v.evidence.push_back({std::string(kOneByOne) + ", furthest from what it gave, of the largest value",
                        number_text(furthest(opened))});
}

/// True if the operators one by one go bad in the elements that the region gave as bad, but for one in a
/// hundred.
bool goes_bad_alike(const Opened& opened) {
  for (std::size_t i = 0; i < opened.recorded.size(); ++i) {
    const at::Tensor &a = opened.recorded[i], &b = opened.outputs[i];
    if (!a.defined() || all_finite(a)) continue;
    if (a.sizes() != b.sizes()) return false;
    if (100 * a.isfinite().ne(b.isfinite()).sum().item<std::int64_t>() > a.numel()) return false;
  }
  return true;
}

/// True if the culprit is an fp16 overflow that is not why the values are bad. Compiled code keeps fp32
/// between fused operators, so what overflows one by one need not have done so there.
bool overflowed_only_here(const Case& inner, const Verdict& verdict) {
  const OpRow* op = inner.op();
  if (verdict.cause != Label::fp16_overflow || verdict.precision.fp32 != PrecisionResult::non_finite || !op)
    return false;
  const TensorRow* output = find_row(inner.doc(), TensorId{op->first_output});
  return op->output_count > 0 && output && output->dtype == DType::float16;
}

/// True if what the region gave as bad is, one by one, so near the end of its format that rounding once
/// instead of after each operator may decide: neither is wrong then.
bool at_the_end_of_its_format(const Opened& opened) {
  constexpr double kNear = 0.9;
  for (std::size_t i = 0; i < opened.recorded.size(); ++i) {
    const at::Tensor &a = opened.recorded[i], &b = opened.outputs[i];
    if (!a.defined() || all_finite(a) || a.sizes() != b.sizes() || !a.is_floating_point()) continue;
    const at::Tensor there = a.isfinite().logical_not().logical_and(b.isfinite());
    const double largest =
        b.to(at::kDouble).abs().where(there, at::zeros({}, at::kDouble)).max().item<double>();
    const auto type = dtype_of(a.scalar_type());
    const auto format = type ? format_of(*type) : std::nullopt;
    if (format && largest >= kNear * info(*format).max_finite) return true;
  }
  return false;
}

/// The verdict on what is inside takes the place of that on the region.
void take(const Verdict& inner, Verdict& v) {
  v.culprit.inside = v.culprit.op;
  v.culprit.op = inner.culprit.op;
  v.culprit.module = inner.culprit.module;
  v.culprit.value = inner.culprit.value;
  v.culprit.count = inner.culprit.count;
  v.culprit.first = inner.culprit.first;
  if (!inner.culprit.stack.empty()) v.culprit.stack = inner.culprit.stack;
  v.cause = inner.cause;
  v.explanation =
      "Inside a torch.compile region, whose operators were run one by one on what it was given: " +
      inner.explanation;
  v.advice = inner.advice;
  v.source = inner.source;
  v.claims = inner.claims;
  v.precision = inner.precision;
  v.fix = inner.fix;
  if (v.fix) v.fix->scope = Scope::region;
  v.evidence.insert(v.evidence.end(), inner.evidence.begin(), inner.evidence.end());
  v.counterfactuals.insert(v.counterfactuals.end(), inner.counterfactuals.begin(),
                           inner.counterfactuals.end());
  v.not_tested.push_back(
      "what the rest of the step does with what was changed inside the region: what comes after it was "
      "compiled for the values that it gave");
}

void call_it_the_compiler(Verdict& v) {
  v.cause = Label::compiler;
  v.explanation =
      "The compiled region gives NaN or Inf where its operators, run one by one on the same values, give "
      "finite "
      "numbers, as they do in fp64.";
  v.advice =
      "Run this part without torch.compile (torch.compiler.disable on its function, or "
      "TORCH_COMPILE_DISABLE=1 for all), "
      "and report it to PyTorch with this file.";
  v.source = "the graph that the compiler was given, run by PyTorch's own kernels";
}

void look(const Case& c, const RegionGraph& graph, const DiagnoseOptions& options, Verdict& v) {
  const Opened opened = open(c, graph, region_call(c.doc(), *c.op()));
  const auto replayer = replayer_of(opened.recording);
  if (!replayer) throw std::runtime_error("its recording can't be run");
  add_comparison(opened, graph, v);
  const Case inner = make_case(*replayer);
  const bool reproduced =
      std::any_of(opened.recorded.begin(), opened.recorded.end(), [&](const at::Tensor& t) {
        const auto i = static_cast<std::size_t>(&t - opened.recorded.data());
        return t.defined() && !all_finite(t) && !all_finite(opened.outputs[i]);
      });
  if (!reproduced) {
    const RunResult exact = inner.run({.precision = Precision::fp64});
    const bool near = at_the_end_of_its_format(opened);
    if (!graph.draws() && exact.failed == 0 && exact.births.empty() && !near)
      call_it_the_compiler(v);
    else
      v.explanation += near ? " Its operators one by one give finite values, so near the end of the format "
                              "that it depends on "
                              "how often they are rounded."
                            : " Its operators one by one give finite values.";
    return;
  }
  if (!graph.draws() && !goes_bad_alike(opened)) {
    v.explanation +=
        " Its operators one by one go bad in other elements: compiled code rounds less often, so this is not "
        "what "
        "happened there.";
    return;
  }
  if (inner.culprit().value.empty() || inner.culprit().origin != word(Origin::op) || !inner.op()) {
    v.not_tested.push_back("which operator of the region it was: none of them alone is to blame");
    return;
  }
  Reproduction same;
  same.bit_exact = true;
  same.outputs_compared = static_cast<std::int64_t>(inner.doc().ops.size());
  DiagnoseOptions inside = options;
  inside.find_samples = false;
  const Verdict found = diagnose(inner, same, "", inside);
  if (overflowed_only_here(inner, found)) {
    v.explanation += " One by one, " + inner.op_text(inner.op_index()) +
                     " leaves the range of fp16, which is not why the values are bad: they are in fp32 too.";
    return;
  }
  take(found, v);
}

}  // namespace

void look_into_region(const Case& c, const DiagnoseOptions& options, Verdict& v) {
  if (!c.op() || c.op()->name != kCompiledRegion || !c.lab() || v.origin != Origin::op) return;
  const RegionCall call = region_call(c.doc(), *c.op());
  const auto text = call.graph < 0 ? std::nullopt : c.read(region_graph_path(call.graph));
  if (!text) {
    v.not_tested.push_back(
        "which operator of the region it was: its graph is not in this file (it was compiled before the "
        "probe came, or came from a cache of compiled graphs)");
    return;
  }
  const auto graph = RegionGraph::parse(
      std::string(static_cast<const char*>(text->contiguous().const_data_ptr()), text->nbytes()));
  if (!graph) {
    v.not_tested.push_back("which operator of the region it was: " + graph.error().message);
    return;
  }
  if (options.progress) options.progress("inside the compiled region");
  try {
    look(c, *graph, options, v);
  } catch (const std::exception& e) {
    v.not_tested.push_back("which operator of the region it was: its graph can't be run here (" +
                           std::string(e.what()).substr(0, 200) + ")");
  }
}

}  // namespace nanquest
