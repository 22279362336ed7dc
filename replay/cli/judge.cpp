// nanquest-replay judge FILE: what the runs of a rehearsal show.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "probe/snapshot/atomic_file.h"
#include "replay/cli/commands.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest::cli {
namespace {

Result<std::string> content_of(const std::string& file) {
  if (file != "-") return read_whole_file(file);
  std::ostringstream text;
  text << std::cin.rdbuf();
  return text.str();
}

}  // namespace

int judge_command(const JudgeArguments& arguments) {
  const Result<std::string> text = content_of(arguments.file);
  if (!text) return fail(text.error());
  Result<Rehearsal> rehearsal = rehearsal_from_json(*text);
  if (!rehearsal)
    return fail(
        {rehearsal.error().code, arguments.file + ": " + rehearsal.error().message, rehearsal.error().hint});
  judge(*rehearsal);
  std::fputs((arguments.json ? to_json(*rehearsal) : rehearsal_text(*rehearsal)).c_str(), stdout);
  const bool cured = rehearsal->root && !rehearsal->root->change.empty();
  return static_cast<int>(cured ? ExitCode::ok : ExitCode::finding);
}

}  // namespace nanquest::cli
