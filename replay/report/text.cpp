#include <algorithm>

#include "probe/base/wrap.h"
#include "probe/snapshot/frames.h"
#include "replay/report/report.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

constexpr int kIndent = 12;

/// Collects "label   wrapped text" blocks.
class Page {
 public:
  explicit Page(const TextStyle& style) : style_(style) {}

  std::string paint(const char* code, const std::string& text) const {
    return style_.colour ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }

  /// One labelled paragraph; `code` colours its first line's label only, so that wrapping stays exact.
  void block(const std::string& label, const std::string& text, const char* code = "1") {
    std::string lead = label;
    lead.resize(std::max<std::size_t>(kIndent, lead.size() + 1), ' ');
    if (!label.empty()) lead = paint(code, lead);
    for (const std::string& line :
         wrapped(text, static_cast<std::size_t>(std::max(1, style_.width - kIndent)))) {
      text_ += lead + line + '\n';
      lead.assign(kIndent, ' ');
    }
  }

  const std::string& text() const { return text_; }

 private:
  TextStyle style_;
  std::string text_;
};

std::string value_text(const CulpritInfo& c) {
  return (c.count == 0 ? "" : std::to_string(c.count) + " ") + spoken(c.value, c.count);
}

void not_tested(Page& page, const Verdict& v) {
  for (std::size_t i = 0; i < v.not_tested.size(); ++i) page.block(i ? "" : "untested", v.not_tested[i]);
}

}  // namespace

std::string where_text(const Verdict& v) {
  std::string text = v.culprit.op.empty() ? std::string("no op") : v.culprit.op;
  if (!v.culprit.module.empty()) text += " in " + v.culprit.module;
  if (v.phase)
    text.append(" (")
        .append(word(*v.phase))
        .append(v.culprit.node.empty() ? "" : ", " + v.culprit.node)
        .append(v.culprit.pass.empty() ? "" : ", " + v.culprit.pass)
        .append(")");
  if (v.culprit.index >= 0)
    text += (v.culprit.inside.empty() ? ", op " : ", inside " + v.culprit.inside + ", op ") +
            std::to_string(v.culprit.index);
  if (!v.culprit.tensor.empty()) text += ", reading " + v.culprit.tensor;
  if (!v.culprit.part.empty()) text += " (" + v.culprit.part + ")";
  return text;
}

std::string to_text(const Verdict& v, const TextStyle& style) {
  Page page(style);
  if (!v.found) {
    const bool all = !v.unseen.any();
    page.block(all ? "NOTHING" : "NOT SEEN", nothing_text(v), all ? "1;32" : "1;33");
    if (!all) page.block("do", unseen_advice(), "1;33");
    page.block("proof", reproduction_text(v.reproduction));
    not_tested(page, v);
    return page.text();
  }
  const bool known = v.cause != Label::unknown;
  page.block(known ? "CAUSE" : "UNKNOWN",
             std::string(known ? word(v.cause) : meaning(v.cause)) + " at step " + std::to_string(v.step) +
                 ": " + value_text(v.culprit) +
                 (known ? " (" + std::string(meaning(v.cause)) + ")" : std::string()),
             known ? "1;31" : "1;33");
  page.block("where", where_text(v));
  if (!v.culprit.stack.empty()) page.block("", program_frame(v.culprit.stack));
  page.block("why", v.explanation);
  if (v.ranks) page.block("ranks", v.ranks->text);
  if (v.fix)
    page.block("do", v.fix->advice, "1;32");
  else if (!v.advice.empty())
    page.block("do", v.advice + " (not verified on this step)", "1;33");
  if (v.fix) page.block("tried", fix_text(*v.fix));
  if (v.root) page.block("root", root_text(*v.root), v.root->change.empty() ? "1;33" : "1;32");
  if (const std::string blame = blame_text(v.blame); !blame.empty()) page.block("blame", blame);
  page.block("sure", confidence_text(v));
  if (const std::string text = precision_text(v); !text.empty()) page.block("precision", text);
  page.block("proof", reproduction_text(v.reproduction));
  for (const Evidence& e : v.evidence)
    page.block("", "- " + e.name + ": " + e.value + (e.limit.empty() ? "" : " (limit " + e.limit + ")"));
  for (const Claim& c : v.claims)
    if (c.cause != v.cause || !c.facts_against.empty()) page.block("", "- claimed too, " + claim_text(c));
  for (const Counterfactual& c : v.counterfactuals)
    page.block("", "- " + std::string(c.kind == ChangeKind::placebo ? "placebo, " : "with ") + c.change +
                       ": " + std::string(spoken(c.result)));
  if (v.batch > 0 && !v.poison.empty()) {
    std::string text = "of " + std::to_string(v.batch) + ":";
    for (std::size_t i = 0; i < v.poison.size(); ++i) {
      text.append(" ").append(std::to_string(v.poison[i]));
      if (i < v.poison_ids.size()) text.append(" (").append(v.poison_ids[i]).append(")");
    }
    page.block("samples", text);
  }
  not_tested(page, v);
  return page.text();
}

}  // namespace nanquest
