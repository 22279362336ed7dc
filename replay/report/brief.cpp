#include "replay/report/report.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

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

std::string do_text(const Verdict& v) {
  if (v.fix) return sentences(v.fix->advice, 2) + " (tried on this step: \"" + v.fix->change + "\" heals it)";
  if (!v.advice.empty()) return sentences(v.advice, 2) + " (not verified on this step)";
  return "nothing that was tried on this step heals it";
}

}  // namespace

std::string to_brief(const Verdict& v) {
  const std::string step = "step " + std::to_string(v.step) + ": ";
  if (!v.found) return nothing_text(v) + "\n" + (v.unseen.any() ? "do: " + unseen_advice() + "\n" : "");
  const std::string count = v.culprit.count == 0 ? "" : std::to_string(v.culprit.count) + " ";
  return step + std::string(word(v.cause)) + ", " + count + spoken(v.culprit.value, v.culprit.count) + ": " +
         where_text(v) + "\nwhy: " + sentences(v.explanation, 2) + "\ndo: " + do_text(v) + "\n" +
         (v.root ? "root: " + root_text(*v.root) + "\n" : "");
}

}  // namespace nanquest
