#include "viewer/model/verdict_words.h"

#include <algorithm>

#include "probe/snapshot/frames.h"
#include "replay/verdict/sentences.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {

std::string headline(const Verdict& v, bool first) {
  const CulpritInfo& c = v.culprit;
  const std::string step = " at step " + std::to_string(v.step);
  if (!v.on_record.empty()) return "Step " + std::to_string(v.step) + " is out of its run's usual range";
  if (c.op.empty() && c.tensor.empty()) return "A non-finite step" + step;
  if (c.op.empty()) return c.tensor + " was already bad" + step;
  std::string text = c.op + (c.module.empty() ? "" : " in " + c.module);
  if (v.origin != Origin::op && !c.tensor.empty()) return text + " read the bad " + c.tensor + step;
  if (c.value == BadValue::silent) return text + " lost values silently" + step;
  if (arrived(v)) {
    const RankCulprit* const other = other_rank(v);
    return (other ? "Rank " + std::to_string(other->rank) : std::string("Another rank")) + "'s " +
           spoken(c.value) + " came by " + text + step;
  }
  return text.append(first ? " made the first " : " made ").append(spoken(c.value)) + step;
}

std::string what(const Verdict& v) {
  if (!v.on_record.empty()) return on_record_text(v);
  const CulpritInfo& c = v.culprit;
  std::string text = (c.count == 0 ? "" : grouped(c.count) + " ") + spoken(c.value, c.count);
  if (v.origin != Origin::op && !c.tensor.empty())
    text += " in " + c.tensor + ", there before the step began";
  else if (!c.op.empty())
    text += " in the output of " + c.op;
  if (!c.first.empty()) text += "; the first at index " + shape_text(c.first);
  if (arrived(v)) text += "; what this rank gave was finite";
  return text;
}

std::string where(const Verdict& v) {
  const CulpritInfo& c = v.culprit;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (v.phase) add(std::string(word(*v.phase)));
  if (!c.module.empty()) add("module " + c.module);
  if (!c.node.empty()) add("inside " + c.node);
  if (c.index >= 0) add("op " + std::to_string(c.index));
  if (const std::string frame = program_frame(c.stack); !frame.empty()) text += "\n" + frame;
  return text;
}

Fact fix_fact(const Verdict& v) {
  if (v.fix)
    return {"Fix", fix_text(*v.fix) + (v.fix->verified ? "" : " (not verified)"),
            v.fix->verified ? Sign::verified : Sign::caution};
  return {"Fix", "none: " + no_fix_text(v)};
}

std::string advice_text(const Verdict& v) {
  const std::string& advice = v.fix && !v.fix->advice.empty() ? v.fix->advice : v.advice;
  const bool same = v.fix && advice.find(v.fix->change) != std::string::npos;
  return same ? "" : advice;
}

std::string samples_text(const Verdict& v) {
  if (v.poison.empty()) return "";
  constexpr std::size_t kNamed = 8;
  const std::size_t shown = std::min(v.poison.size(), kNamed);
  std::string text = v.poison.size() == 1 ? "sample " : "samples ";
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == v.poison.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(v.poison[i]);
    if (i < v.poison_ids.size()) text += " (" + v.poison_ids[i] + ")";
  }
  if (shown < v.poison.size()) text += " and " + grouped(v.poison.size() - shown) + " more";
  if (v.batch > 0) text += " of samples 0 to " + std::to_string(v.batch - 1);
  return text + "; without " + (v.poison.size() == 1 ? "it" : "them") +
         (v.on_record.empty() ? " the step is finite" : " the step is in its usual range");
}

}  // namespace nanquest::viewer
