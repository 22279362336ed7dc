#include <algorithm>

#include "probe/base/wrap.h"
#include "probe/snapshot/frames.h"
#include "replay/report/report.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

constexpr int kIndent = 12;

/// The text in at most `most` lines: as many of its sentences as fit, at least the first, which is cut if
/// need be.
std::vector<std::string> within(std::string text, std::size_t width, std::size_t most) {
  std::vector<std::string> lines = wrapped(text, width);
  while (lines.size() > most) {
    const std::size_t end = text.size() < 2 ? std::string::npos : text.rfind(". ", text.size() - 2);
    if (end == std::string::npos) {
      lines.resize(most);
      std::string& last = lines.back();
      if (last.size() > width - 2) last.resize(std::min(last.rfind(' ', width - 2), last.size()));
      last += " …";
      break;
    }
    text.resize(end + 1);
    lines = wrapped(text, width);
  }
  return lines;
}

/// Collects "label   wrapped text" blocks.
class Page {
 public:
  /// `cut`: only the first lines of a block are shown.
  Page(const TextStyle& style, bool cut) : style_(style), cut_(cut) {}

  std::string paint(const char* code, const std::string& text) const {
    return style_.colour ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }

  /// One labelled paragraph; `code` colours only its label, so that wrapping stays exact. At most `most`
  /// lines where texts are cut.
  void block(const std::string& label, const std::string& text, const char* code = "1",
             std::size_t most = 2) {
    std::string lead = label;
    lead.resize(std::max<std::size_t>(kIndent, lead.size() + 1), ' ');
    if (!label.empty()) lead = paint(code, lead);
    const auto width = static_cast<std::size_t>(std::max(3, style_.width - kIndent));
    const std::vector<std::string> lines = cut_ ? within(text, width, most) : wrapped(text, width);
    for (const std::string& line : lines) {
      text_ += lead + line + '\n';
      lead.assign(kIndent, ' ');
    }
  }

  /// Lines that must not be wrapped or moved: a person may copy them.
  void verbatim(const std::string& label, const std::string& lines) {
    text_ += paint("1", label) + '\n' + lines;
  }

  const std::string& text() const { return text_; }

 private:
  TextStyle style_;
  bool cut_;
  std::string text_;
};

std::string value_text(const CulpritInfo& c) {
  return (c.count == 0 ? "" : std::to_string(c.count) + " ") + spoken(c.value, c.count);
}

void not_tested(Page& page, const Verdict& v) {
  for (std::size_t i = 0; i < v.not_tested.size(); ++i) page.block(i ? "" : "not tested", v.not_tested[i]);
}

/// The first `count` sentences of a text.
std::string sentences(const std::string& text, int count) {
  std::size_t end = 0;
  for (; count > 0; --count) {
    const std::size_t next = text.find(". ", end);
    if (next == std::string::npos) return text;
    end = next + 2;
  }
  return text.substr(0, end - 1);
}

void samples(Page& page, const Verdict& v) {
  if (v.batch <= 0 || v.poison.empty()) return;
  std::string text = "of " + std::to_string(v.batch) + ":";
  for (std::size_t i = 0; i < v.poison.size(); ++i) {
    text.append(" ").append(std::to_string(v.poison[i]));
    if (i < v.poison_ids.size()) text.append(" (").append(v.poison_ids[i]).append(")");
  }
  page.block("samples", text, "1", 1);
}

/// The answers: what, where, why, what to do, what was tried, how certain.
void answers(Page& page, const Verdict& v, bool full) {
  const bool known = v.cause != Label::unknown, finite = !v.on_record.empty();
  if (!known && arrived(v)) {
    const RankCulprit* const other = other_rank(v);
    page.block("ELSEWHERE",
               (other ? "rank " + std::to_string(other->rank) : std::string("another rank")) +
                   " made the bad values of step " + std::to_string(v.step) + "; here arrived " +
                   value_text(v.culprit),
               "1;33");
  } else
    page.block(known ? "CAUSE" : "UNKNOWN",
               std::string(known ? word(v.cause) : meaning(v.cause)) + " at step " + std::to_string(v.step) +
                   ": " + (finite ? v.on_record : value_text(v.culprit)) +
                   (known ? " (" + std::string(meaning(v.cause)) + ")" : std::string()),
               known ? "1;31" : "1;33");
  if (!finite) page.block("where", where_text(v));
  if (!v.culprit.stack.empty()) page.block("", program_frame(v.culprit.stack), "1", 1);
  page.block("why", v.explanation, "1", 4);
  if (v.ranks) page.block("ranks", v.ranks->text, "1", 4);
  if (v.fix)
    page.block("do", v.fix->advice, "1;32");
  else if (!v.advice.empty())
    page.block("do", v.advice, "1;33");
  if (v.fix)
    page.block("tried", fix_text(*v.fix), "1", 3);
  else if (!full && !finite)
    page.block("tried", no_fix_text(v));
  if (full && v.fix && !v.fix->no_patch.empty()) page.block("patch", "none: " + v.fix->no_patch);
  if (full && v.fix && !v.fix->patch.empty()) page.verbatim("patch", v.fix->patch);
  samples(page, v);
  if (v.root) page.block("root", root_text(*v.root), v.root->change.empty() ? "1;33" : "1;32");
  if (known || v.likely) page.block("confidence", confidence_text(v));
}

/// The evidence for the answers.
void evidence(Page& page, const Verdict& v) {
  if (const std::string blame = blame_text(v.blame); !blame.empty()) page.block("blame", blame);
  if (const std::string text = precision_text(v); !text.empty()) page.block("precision", text);
  page.block("proof", reproduction_text(v.reproduction));
  for (const Evidence& e : v.evidence)
    page.block("", "- " + e.name + ": " + e.value + (e.limit.empty() ? "" : " (limit " + e.limit + ")"));
  for (const Claim& c : v.claims)
    if (c.cause != v.cause || !c.facts_against.empty()) page.block("", "- claimed too, " + claim_text(c));
  for (const Counterfactual& c : v.counterfactuals)
    page.block("", "- " + std::string(c.kind == ChangeKind::placebo ? "control: " : "with ") + c.change +
                       ": " + trial_text(c));
  not_tested(page, v);
}

std::string do_text(const Verdict& v) {
  if (!v.on_record.empty()) return sentences(v.advice, 2);
  if (v.fix)
    return sentences(v.fix->advice, 2) + " (tried: with \"" + v.fix->change + "\" this step is finite)";
  if (v.advice.empty()) return no_fix_text(v);
  return arrived(v) ? v.advice : sentences(v.advice, 2) + " (" + no_fix_text(v) + ")";
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
  Page page(style, v.found && !style.full);
  if (v.found) {
    answers(page, v, style.full);
    if (style.full)
      evidence(page, v);
    else if (!style.file.empty())
      page.block("file", style.file);
  } else {
    const bool all = !v.unseen.any();
    page.block(all ? "NOTHING" : "NOT SEEN", nothing_text(v), all ? "1;32" : "1;33");
    if (!all || !v.advice.empty()) page.block("do", all ? v.advice : unseen_advice(), "1;33");
    page.block("proof", reproduction_text(v.reproduction));
    not_tested(page, v);
  }
  if (!style.next.empty()) page.block("next", style.next);
  return page.text();
}

std::string to_brief(const Verdict& v) {
  if (!v.found) return nothing_text(v) + "\n" + (v.unseen.any() ? "do: " + unseen_advice() + "\n" : "");
  const std::string what = v.on_record.empty() ? value_text(v.culprit) + ": " + where_text(v) : v.on_record;
  return "step " + std::to_string(v.step) + ": " + std::string(word(v.cause)) + ", " + what +
         "\nwhy: " + sentences(v.explanation, 2) + "\ndo: " + do_text(v) + "\n" +
         (v.root ? "root: " + root_text(*v.root) + "\n" : "");
}

}  // namespace nanquest
