#include "replay/verdict/root.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest {
namespace {

/// How diagnose begins the line that says a single step can't show a root (replay/cause/precision.cpp).
constexpr const char* kMissed = "the root cause:";

RootCause root_of(const RehearsedRoot& found, const Verdict& verdict, const std::string& file) {
  RootCause root;
  // In a wider format the run goes on: then the cause of the step is that of the run.
  root.cause =
      found.cause == "PRECISION" ? verdict.cause : from_word<Label>(found.cause).value_or(Label::unknown);
  root.change = found.change;
  root.steps = found.steps;
  root.verified = found.verified;
  root.cured = found.cured;
  root.tried = found.tried;
  root.explanation = found.explanation;
  root.file = file;
  return root;
}

/// What was tried is not advised again.
void advise(std::string& advice, const RootCause& root) {
  const std::size_t at = advice.find(root_advice());
  if (at == std::string::npos) return;
  advice.replace(at, root_advice().size(),
                 "Against the root: " +
                     (root.change.empty() ? "nothing that was tried cures the run."
                                          : root.change + ", which cured the run when it was tried."));
}

}  // namespace

std::string root_advice() {
  return "Look for the root first: a smaller learning rate, a longer warm-up or a normalisation (not tested here).";
}

void take_root(Verdict& verdict, const std::string& snapshot) {
  const std::filesystem::path path = rehearsal_path(snapshot);
  std::error_code error;
  if (!verdict.found || !std::filesystem::exists(path, error)) return;
  const Result<std::string> text = read_whole_file(path.string());
  const Result<Rehearsal> rehearsal = text ? rehearsal_from_json(*text) : Result<Rehearsal>(text.error());
  const std::string name = path.filename().string();
  if (!rehearsal) {
    verdict.not_tested.push_back("the root: " + name + " can't be read: " + rehearsal.error().message);
    return;
  }
  if (rehearsal->step != verdict.step || rehearsal->rank != verdict.rank) return;
  if (!rehearsal->root) {
    verdict.not_tested.push_back("the root, although it was rehearsed (" + name +
                                 "): " + rehearsal->not_tried);
    return;
  }
  verdict.root = root_of(*rehearsal->root, verdict, name);
  advise(verdict.advice, *verdict.root);
  if (verdict.fix) advise(verdict.fix->advice, *verdict.root);
  std::erase_if(verdict.not_tested, [](const std::string& line) { return line.starts_with(kMissed); });
}

}  // namespace nanquest
