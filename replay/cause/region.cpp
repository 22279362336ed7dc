#include "replay/cause/region.h"

#include <algorithm>
#include <string>

#include "probe/observe/op_traits.h"
#include "probe/trace/regions.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/opened_region.h"
#include "replay/cause/record_parts.h"
#include "replay/trace/operators.h"
#include "replay/verdict/numbers.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

const char* const kOneByOne = "the region's operators one by one";

void add_comparison(const OpenedRegion& opened, const RegionGraph& graph, Verdict& v) {
  if (graph.draws()) {
    v.not_tested.push_back(
        "that the region's operators one by one give what it gave: its kernels drew random numbers, which "
        "can't be drawn again");
    return;
  }
  v.evidence.push_back({std::string(kOneByOne) + ", furthest from what it gave, of the largest value",
                        number_text(furthest(opened))});
}

/// True if the culprit is an fp16 overflow that is not the reason for the bad values. Compiled code keeps
/// fp32 between fused operators, so what overflows one by one need not have done so there.
bool overflowed_only_here(const Case& inner, const Verdict& verdict) {
  const OpRow* op = inner.op();
  if (verdict.cause != Label::fp16_overflow || verdict.precision.fp32 != PrecisionResult::non_finite || !op)
    return false;
  const TensorRow* output = find_row(inner.doc(), TensorId{op->first_output});
  return op->output_count > 0 && output && output->dtype == DType::float16;
}

/// The operator replaces the region as the culprit.
void name_inside(const CulpritInfo& inner, CulpritInfo& culprit) {
  culprit.inside = culprit.op;
  culprit.op = inner.op;
  culprit.module = inner.module;
  if (!inner.stack.empty()) culprit.stack = inner.stack;
}

/// The verdict on the inside replaces that on the region.
void take(const Verdict& inner, Verdict& v) {
  name_inside(inner.culprit, v.culprit);
  v.culprit.value = inner.culprit.value;
  v.culprit.count = inner.culprit.count;
  v.culprit.first = inner.culprit.first;
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

Verdict diagnose_inside(const Case& inner, DiagnoseOptions options) {
  Reproduction same;
  same.bit_exact = true;
  same.outputs_compared = static_cast<std::int64_t>(inner.doc().ops.size());
  options.find_samples = false;
  return diagnose(inner, same, "", options);
}

/// The region had a bad input: the operator that reads it first is the culprit, and the cause stays the same,
/// except for a number which only the operator's computation distinguishes from data (a learning rate that is
/// a tensor).
void name_reader(const Case& inner, const DiagnoseOptions& options, Verdict& v) {
  const bool reads = inner.op() && inner.culprit().origin != word(Origin::op);
  if (!reads) {
    v.not_tested.push_back("which operator of the region reads it first: one by one none is known to");
    return;
  }
  const Verdict inside = diagnose_inside(inner, {.try_fixes = false});
  if (v.cause != Label::bad_data || inside.cause != Label::bad_setting)
    return name_inside(inside.culprit, v.culprit);
  take(options.try_fixes ? diagnose_inside(inner, options) : inside, v);
  v.origin = inside.origin;
  v.phase = inside.phase;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

/// An operator is named by its own name if its reference ran for it.
void use_own_names(const std::set<std::string>& operators, Verdict& v) {
  for (const std::string& name : operators) {
    const std::string reference = trace::reference_name(name);
    const auto rename = [&](std::string& text) {
      for (auto at = text.find(reference); at != std::string::npos; at = text.find(reference))
        text.replace(at, reference.size(), name);
    };
    rename(v.culprit.op);
    rename(v.explanation);
    for (Evidence& evidence : v.evidence) rename(evidence.name), rename(evidence.value);
  }
  if (!operators.empty())
    v.not_tested.push_back("the own kernels of " + listed(operators) +
                           ": they are not here, and what they compute was computed in another way");
}

void look(const Case& c, const RegionGraph& graph, const DiagnoseOptions& options,
          std::set<std::string>& stood_in, Verdict& v) {
  const OpenedRegion opened = open_region_of(c, graph);
  stood_in = opened.stood_in;
  const auto replayer = replayer_of(opened.recording);
  if (!replayer) throw std::runtime_error("its recording can't be run");
  add_comparison(opened, graph, v);
  const Case inner = make_case(*replayer);
  if (v.origin != Origin::op) return name_reader(inner, options, v);
  const bool reproduced =
      std::any_of(opened.recorded.begin(), opened.recorded.end(), [&](const at::Tensor& t) {
        const auto i = static_cast<std::size_t>(&t - opened.recorded.data());
        return t.defined() && !all_finite(t) && !all_finite(opened.outputs[i]);
      });
  if (!reproduced) {
    const RunResult exact = inner.run({.precision = Precision::fp64});
    const bool near = !graph.draws() && rounding_decides(c, graph, opened);
    const bool well = !graph.draws() && exact.failed == 0 && exact.births.empty() && !near;
    if (well && stood_in.empty())
      call_it_the_compiler(v);
    else if (well)
      v.explanation += " Its operators one by one give finite values, as they do in fp64; but of " +
                       listed(stood_in) +
                       " the own kernels are not here: one of these may be wrong, or the compiler.";
    else
      v.explanation += near ? " Its operators one by one give finite values, but a last bit decides: "
                              "compiled code, which rounds "
                              "less often, may differ there without being wrong."
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
  const Verdict found = diagnose_inside(inner, options);
  if (overflowed_only_here(inner, found)) {
    v.explanation += " One by one, " + inner.op_text(inner.op_index()) +
                     " leaves the range of fp16, which is not why the values are bad: they are in fp32 too.";
    return;
  }
  take(found, v);
}

}  // namespace

void look_into_region(const Case& c, const DiagnoseOptions& options, Verdict& v) {
  if (!c.op() || c.op()->name != kCompiledRegion || !c.lab()) return;
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
    std::set<std::string> stood_in;
    look(c, *graph, options, stood_in, v);
    use_own_names(stood_in, v);
  } catch (const std::exception& e) {
    v.not_tested.push_back("which operator of the region it was: its graph can't be run here (" +
                           std::string(e.what()).substr(0, 200) + ")");
  }
}

}  // namespace nanquest
