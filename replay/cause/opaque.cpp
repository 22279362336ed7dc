#include "replay/cause/opaque.h"

#include <algorithm>
#include <map>
#include <string>

#include "probe/observe/op_traits.h"
#include "probe/trace/culprit.h"
#include "replay/trace/attention.h"
#include "replay/trace/unseen.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

bool is_substituted(const Case& c, std::int32_t op) {
  const RunResult& run = c.whole(Precision::as_recorded);
  return op >= 0 && static_cast<std::size_t>(op) < run.ops.size() &&
         run.ops[static_cast<std::size_t>(op)].substituted;
}

/// "aten::a (3), aten::b": the first few names, with their counts.
std::string names_of(const std::map<std::string, int>& ops) {
  std::string text;
  int named = 0;
  for (const auto& [name, count] : ops) {
    if (++named > 6) return text + ", …";
    text += (text.empty() ? "" : ", ") + name + (count > 1 ? " (" + std::to_string(count) + ")" : "");
  }
  return text;
}

int count_of(const std::map<std::string, int>& names) {
  int sum = 0;
  for (const auto& [name, count] : names) sum += count;
  return sum;
}

bool could_not_run(const Case& c, const RunResult& run, std::size_t op) {
  return !run.ops[op].error.empty() && !(c.doc().ops[op].flags & kOpFailed);
}

}  // namespace

std::optional<Finding> opaque_finding(const Case& c) {
  const OpRow* op = c.op();
  if (!op || c.culprit().origin != "op" || !is_substituted(c, c.op_index())) return std::nullopt;
  Finding f;
  const BadValue value = from_word<BadValue>(c.culprit().value).value_or(BadValue::none);
  const std::string bad = std::to_string(c.culprit().count) + " " + spoken(value, c.culprit().count);
  const std::string module = c.module_of(c.op_index());
  const std::string where = module.empty() ? "" : " in " + module;
  if (op->name == kCompiledRegion) {
    f.explanation = "Inside a torch.compile region" + where + ": what went in was finite, " + bad +
                    " came out. Its kernels are no ops, so which of them it was can't be seen; run with "
                    "TORCH_COMPILE_DISABLE=1 to see the op.";
    f.advice = "Run the step again with TORCH_COMPILE_DISABLE=1.";
  } else if (!arrived_by(c.doc()).empty()) {
    f.explanation = bad + " arrived by " + op->name + " from another rank: what this rank gave was finite.";
    f.advice =
        "Replay the file of the rank that made it. If it is copied beside this one, this verdict names the "
        "rank.";
  } else {
    f.explanation = op->name + where + " made " + bad +
                    " out of finite inputs, but can't be run again here, so nothing could be tried on it.";
    f.advice = "Check " + op->name + " on the inputs in this file.";
  }
  return f;
}

std::int32_t first_failed(const Case& c) {
  const RunResult& run = c.whole(Precision::as_recorded);
  for (std::size_t i = 0; i < run.ops.size() && i < c.doc().ops.size(); ++i)
    if (could_not_run(c, run, i)) return static_cast<std::int32_t>(i);
  return kNone;
}

void add_opaque(const Case& c, Verdict& v) {
  const RunResult& run = c.whole(Precision::as_recorded);
  std::map<std::string, int> substituted, attention;
  int failed = 0;
  for (std::size_t i = 0; i < run.ops.size() && i < c.doc().ops.size(); ++i) {
    const std::string& name = c.doc().ops[i].name;
    if (run.ops[i].substituted) ++(trace::is_fused_attention(name) ? attention : substituted)[name];
    failed += could_not_run(c, run, i);
  }
  if (!substituted.empty()) {
    v.evidence.push_back({"ops that can't be run again", names_of(substituted)});
    v.not_tested.push_back(std::to_string(count_of(substituted)) +
                           " ops can't be run again: their recorded outputs were used in every run (" +
                           names_of(substituted) + ")");
  }
  if (!attention.empty())
    v.not_tested.push_back(
        "the device's own fused attention where something before it was changed: the CPU computed "
        "it by matrix products, and drew its dropout anew if it has one (" +
        names_of(attention) + ")");
  if (const std::int32_t first = first_failed(c); first != kNone)
    v.not_tested.push_back("what comes after op " + std::to_string(first) + ", " + c.row(first)->name +
                           ": the replay had to stop there (" +
                           run.ops[static_cast<std::size_t>(first)].error + "; " + std::to_string(failed) +
                           " ops could not be run in all)");
}

void add_unseen(const Case& c, Verdict& v) {
  const UnseenValues seen =
      find_unseen(c.graph(), [&]() -> const RunResult& { return c.whole(Precision::as_recorded); });
  v.unseen = {static_cast<std::int64_t>(seen.ops.size()), {}, seen.loss, seen.gradients};
  std::map<std::string, std::int64_t> counts;
  for (const OpId op : seen.ops) ++counts[c.graph().op(op).name];
  v.unseen.names.assign(counts.begin(), counts.end());
  std::stable_sort(v.unseen.names.begin(), v.unseen.names.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (v.unseen.any())
    v.not_tested.push_back("whether these values, which could not be looked at, hold NaN or Inf: " +
                           unseen_text(v.unseen));
}

}  // namespace nanquest
