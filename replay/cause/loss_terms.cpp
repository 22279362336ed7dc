#include "replay/cause/loss_terms.h"

#include <algorithm>
#include <set>
#include <string>

namespace nanquest {
namespace {

constexpr std::size_t kMaxTerms = 64;

bool one_element(const TraceGraph& graph, TensorId row) {
  const auto& sizes = graph.tensor(row).sizes;
  return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n == 1; });
}

class Terms {
 public:
  explicit Terms(const TraceGraph& graph) : graph_(graph) {}

  void collect(TensorId row, OpId before) {
    if (found_.size() >= kMaxTerms) return;
    const OpId maker = graph_.producer(row, before);
    if (!maker) {
      if (dtype_is_float(graph_.tensor(row).dtype)) outside_ = true;
      return;
    }
    const std::vector<TensorId> summed = summands(maker);
    if (summed.empty()) return add(maker, row);
    for (const TensorId part : summed) collect(part, maker);
  }

  std::vector<LossTerm> take() {
    if (outside_ || found_.size() < 2 || found_.size() >= kMaxTerms) return {};
    std::sort(found_.begin(), found_.end(),
              [](const LossTerm& a, const LossTerm& b) { return a.maker < b.maker; });
    return std::move(found_);
  }

 private:
  /// What the op adds up, passes on, or multiplies by a number; empty if it does more.
  std::vector<TensorId> summands(OpId op) const {
    static const std::set<std::string> sums = {"add", "sub", "rsub", "stack", "cat"};
    static const std::set<std::string> hands_on = {
        "sum",    "mean",     "mul", "div",  "neg",     "clone",     "alias",  "view",  "reshape",
        "detach", "_to_copy", "to",  "copy", "squeeze", "unsqueeze", "expand", "select"};
    const std::string name = plain_name(graph_.op(op));
    const auto reads = graph_.reads(op);
    if (hands_on.count(name) && reads.size() == 1 && of_scalars(reads[0], op)) return {reads[0]};
    if (!sums.count(name) || reads.empty()) return {};
    if (!std::all_of(reads.begin(), reads.end(), [&](TensorId row) { return one_element(graph_, row); }))
      return {};
    return {reads.begin(), reads.end()};
  }

  /// One number, or a list of them as for `stack`.
  bool of_scalars(TensorId row, OpId before) const {
    if (one_element(graph_, row)) return true;
    const OpId maker = graph_.producer(row, before);
    if (!maker) return false;
    const std::string name = plain_name(graph_.op(maker));
    return (name == "stack" || name == "cat") && !summands(maker).empty();
  }

  void add(OpId maker, TensorId row) {
    const bool known =
        std::any_of(found_.begin(), found_.end(), [&](const LossTerm& term) { return term.maker == maker; });
    if (!known) found_.push_back({maker, row, graph_.bad(row)});
  }

  const TraceGraph& graph_;
  std::vector<LossTerm> found_;
  bool outside_ = false;
};

}  // namespace

std::vector<LossTerm> loss_terms(const Case& c) {
  if (c.doc().loss == kNone) return {};
  Terms terms(c.graph());
  terms.collect(TensorId{c.doc().loss}, c.graph().end());
  return terms.take();
}

void add_loss_terms(const Case& c, Verdict& v) {
  std::string bad, good;
  for (const LossTerm& term : loss_terms(c)) {
    std::string& list = term.bad ? bad : good;
    list += (list.empty() ? "" : ", ") + c.op_with_number(term.maker.row());
  }
  if (bad.empty() || good.empty()) return;
  v.evidence.push_back({"terms of the loss that are not finite", bad});
  v.evidence.push_back({"terms that are", good});
}

}  // namespace nanquest
