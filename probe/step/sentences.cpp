// Every sentence that the probe says of a step.
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "probe/step/facts.h"
#include "probe/step/gate.h"
#include "probe/step/one_line.h"

namespace nanquest {
namespace {

/// {name}, {more}, {number}, {since}: of the fact. {nan}: its value is "NaN" or "Inf"; {loss}: "NaN" or
/// "infinite"; {scale}: its value. The others are used only where there is something to say (see `filled`).
constexpr std::pair<Fact::Kind, std::string_view> kSentences[] = {
    {Fact::text, "{name}"},
    {Fact::loss_bad, "the loss is {loss}{and_gradients}"},
    {Fact::gradients_bad, "{number} gradient elements are NaN or Inf"},
    {Fact::clip_norm_bad, "the norm that the gradients were clipped by was not finite, although they were"},
    {Fact::norm_overflows, "the norm of the gradients overflows"},
    {Fact::scale_overflowed, "the loss scale overflowed"},
    {Fact::still_looking,
     "the loss scale overflowed in {number} steps in a row (it was {scale}): the scaler is still looking for "
     "its "
     "scale, these updates are left out"},
    {Fact::buffer_spoiled, "{name} became NaN or Inf"},
    {Fact::stays_bad, "{name}{and_more} became NaN or Inf, and stays so although the update is left out"},
    {Fact::spoiled_between, "{writer} made {name}{and_more} NaN or Inf between the update and the next pass"},
    {Fact::still_bad, "at the end {name}{others} still NaN or Inf"},
    {Fact::never_updated, "no step of {number} was finite"},
    {Fact::scale_fell, "the loss scale fell to {scale}"},
    {Fact::one_more,
     "bad anew, as step {since}: {name}; such steps are counted as incidents, and get no file"},
    {Fact::only_buffer_spoiled, "buffer {name} became NaN or Inf, although loss and gradients are finite"},
    {Fact::hidden_overflow, "an overflow that reaches neither loss nor gradients"},
    {Fact::weight_bad, "{a_weight}{others} NaN or Inf after the update{written_by}"},
    {Fact::moment_bad, "{name}{others} NaN or Inf after the update{written_by}"},
    {Fact::update_wrote_bad, "the update wrote NaN or Inf"},
    {Fact::forecast, "forecast: {name}"},
    {Fact::spike, "a spike: {name} is {scale}, usually {more}"},
    {Fact::spike_too, "{name} is {scale}, usually {more}"},
    {Fact::diverged,
     "DIVERGENCE: the loss left its band at step {since} and has not come back: it is "
     "{scale}{after_name}{moved_first}"},
    {Fact::rank_found_bad, "rank {number} found it not finite"},
    {Fact::rank_overflowed, "rank {number}'s loss scale overflowed"},
    {Fact::no_update_follows, "the program goes on without an update"},
    {Fact::program_ended, "the program ended there"},
    {Fact::raised, "{name} ended the program, and the last that was computed holds {nan}"},
    {Fact::next_pass_bad, "so was the pass after it"},
    {Fact::update_not_skipped, "this program writes its weights itself, so its updates are not skipped"},
    {Fact::update_differs, "the update went wrong on one process and not on another"},
    {Fact::bad_at_start,
     "{name}{and_more} held NaN or Inf before the first update, and neither loss nor gradients show it yet; "
     "a step "
     "that reads it will be an incident"},
    {Fact::carried_on,
     "{name}{others} still NaN or Inf from step {since}; this and further steps that only carry that on are "
     "counted, "
     "not written"},
    {Fact::update_spoiled, "the update of step {since} spoiled {name}"},
    {Fact::update_left_bad, "the update left {name} non-finite"},
    {Fact::bad_since,
     "{name} is non-finite; it was not after step {since}, so an update since then spoiled it"},
    {Fact::bad_before, "{name} was already non-finite when the step began"},
    {Fact::was_finite_after, "it was finite after step {since}; what spoiled it since then is not on record"},
    {Fact::update_not_recorded, "the update is not on record (the next {number} of Probe::update are)"},
    {Fact::no_culprit, "no op, input or state was found that explains it"},
    {Fact::muted, "{name} in {more} is muted"},
    {Fact::level_keeps_none,
     "level guard keeps no trace of the step; run it again with --level trace for a file that replays"},
    {Fact::graph_ran,
     "a captured graph ran in this step, which nobody can look into: run the program without graphs for a "
     "file that "
     "replays"},
    {Fact::update_not_kept,
     "no trace of this step was kept (its gradients were finite; level watch keeps all)"},
    {Fact::nothing_recorded,
     "nothing was on record: no module was called to begin this step (where none ever is, the record begins "
     "with the "
     "second step)"},
    {Fact::files_used_up, "no snapshot: {number} were written already (max_incidents)"},
    {Fact::left_to_rank,
     "no file of this rank: rank {number} was first to say that it is its own{in_brackets}; a row stands in "
     "its place"},
    {Fact::cannot_run_again, "not recorded: another process of this run can't run the step again"},
    {Fact::rerun_threw, "the traced re-run threw: {name}"},
    {Fact::not_reproduced, "not reproduced: nondeterministic (the traced re-run was finite)"},
    {Fact::capture_failed, "capture failed{after_colon}"},
    {Fact::file_not_written, "snapshot not written: {name}"},
    {Fact::file_too_large,
     "snapshot removed: it is larger than what max_disk leaves (give a larger --max-disk)"},
    {Fact::manifest_not_written, "manifest not written: {name}"},
    {Fact::recorded, "recorded as asked"},
    {Fact::not_recorded, "not recorded: {name}"},
    {Fact::off, "nanquest is off: {name} failed{after_colon}"},
};

std::string others(std::int64_t count) {
  if (count <= 0) return " is";
  return " and " + std::to_string(count) +
         (count > 1 ? " other weights, buffers and moments are" : " other tensor are");
}

std::string in_words(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// Replacement for the word in braces.
std::string filled(std::string_view word, const Fact& fact) {
  std::string number = std::to_string(fact.number);
  if (word == "name") return fact.name;
  if (word == "a_weight") return fact.name.empty() ? "a weight" : fact.name;
  if (word == "written_by") return fact.more.empty() ? "" : ", which " + fact.more + " wrote";
  if (word == "more") return fact.more;
  if (word == "writer") return fact.more.empty() ? "the program" : fact.more;
  if (word == "number") return number;
  if (word == "since") return std::to_string(fact.since);
  if (word == "loss") return std::isnan(fact.value) ? "NaN" : "infinite";
  if (word == "nan") return std::isnan(fact.value) ? "NaN" : "Inf";
  if (word == "scale") return in_words(fact.value);
  if (word == "and_gradients")
    return fact.number > 0 ? ", " + number + " gradient elements are NaN or Inf" : "";
  if (word == "and_more") return fact.number > 0 ? " and " + number + " more" : "";
  if (word == "others") return others(fact.number);
  if (word == "after_name") return fact.name.empty() ? "" : ", usually " + fact.name;
  if (word == "moved_first") return fact.more.empty() ? "" : "; what moved first: " + fact.more;
  if (word == "in_brackets") return fact.name.empty() ? "" : " (" + fact.name + ")";
  if (word == "after_colon") return fact.more.empty() ? "" : ": " + fact.more;
  return "";
}

std::string sentence(const Fact& fact) {
  std::string line = fact.step == Fact::kNoStep ? "" : "step " + std::to_string(fact.step) + ": ";
  for (const auto& [kind, text] : kSentences) {
    if (kind != fact.kind) continue;
    std::string_view rest = text;
    for (std::size_t brace; (brace = rest.find('{')) != std::string_view::npos;) {
      const std::size_t end = rest.find('}', brace);
      line += rest.substr(0, brace);
      line += filled(rest.substr(brace + 1, end - brace - 1), fact);
      rest.remove_prefix(end + 1);
    }
    return line += rest;
  }
  return line;
}

}  // namespace

std::string text_of(const Facts& facts) {
  std::string line;
  for (const Fact& fact : facts) append(line, sentence(fact));
  return line;
}

void add_text(Facts& facts, std::string text) {
  if (!text.empty()) facts.push_back({Fact::text, std::move(text)});
}

void add(Facts& facts, Facts more) {
  for (Fact& fact : more) facts.push_back(std::move(fact));
}

Fact what_is_bad(const GateResult& seen, bool norm_bad) {
  const auto elements = static_cast<std::int64_t>(seen.non_finite);
  const Fact::Kind kind = !std::isfinite(seen.loss) ? Fact::loss_bad
                          : elements > 0            ? Fact::gradients_bad
                          : norm_bad                ? Fact::clip_norm_bad
                                                    : Fact::norm_overflows;
  return {.kind = kind, .number = elements, .value = seen.loss};
}

}  // namespace nanquest
