// The file "nanquest.rehearsal", writer and reader side by side.
#include <nlohmann/json.hpp>

#include "replay/verdict/fields.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest {
namespace {

using verdict_file::Fields;
using Ordered = nlohmann::ordered_json;

constexpr const char* kFormat = "nanquest.rehearsal";

Ordered number(double value) {
  return std::isfinite(value) ? Ordered(value) : Ordered(nullptr);
}

Ordered numbers(const std::vector<double>& values) {
  Ordered list = Ordered::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

template <class T>
Ordered or_null(const std::optional<T>& value) {
  return value ? Ordered(*value) : Ordered(nullptr);
}

Ordered run_json(const RehearsedRun& run) {
  return {{"kind", word(run.kind)},
          {"change", run.change},
          {"first_step", run.first_step},
          {"losses", numbers(run.losses)},
          {"failed_step", or_null(run.failed_step)},
          {"failure", run.failure},
          {"ended_itself", run.ended_itself},
          {"not_tried", run.not_tried},
          {"doubt", run.doubt},
          {"mean", number(run.mean)},
          {"end_mean", number(run.end_mean)},
          {"outlives", run.outlives},
          {"learns", run.learns},
          {"cures", run.cures},
          {"remark", run.remark}};
}

Ordered root_json(const RehearsedRoot& root) {
  return {{"cause", root.cause},       {"change", root.change},
          {"cured", root.cured},       {"tried", root.tried},
          {"steps", root.steps},       {"scope", word(Scope::run)},
          {"verified", root.verified}, {"explanation", root.explanation}};
}

/// Losses, null for those that are not known.
void take_numbers(const Fields& j, const char* key, std::vector<double>& out) {
  const nlohmann::json* list = j.member(key);
  if (list == nullptr) return;
  if (!list->is_array()) return j.fail(key, *list, "a list of numbers");
  for (const nlohmann::json& x : *list) {
    if (!x.is_number() && !x.is_null()) return j.fail(key, x, "a number");
    out.push_back(x.is_number() ? x.get<double>() : std::nan(""));
  }
}

RehearsedRun run_from(const Fields& j) {
  RehearsedRun run;
  j.take("kind", run.kind);
  j.take("change", run.change);
  j.take("first_step", run.first_step);
  take_numbers(j, "losses", run.losses);
  j.take("failed_step", run.failed_step);
  j.take("failure", run.failure);
  j.take("ended_itself", run.ended_itself);
  j.take("not_tried", run.not_tried);
  j.take("doubt", run.doubt);
  j.take("mean", run.mean);
  j.take("end_mean", run.end_mean);
  j.take("outlives", run.outlives);
  j.take("learns", run.learns);
  j.take("cures", run.cures);
  j.take("remark", run.remark);
  return run;
}

RehearsedRoot rehearsed_root_from(const Fields& j) {
  RehearsedRoot root;
  j.take("cause", root.cause);
  j.take("change", root.change);
  j.take("cured", root.cured);
  j.take("tried", root.tried);
  j.take("steps", root.steps);
  j.take("verified", root.verified);
  j.take("explanation", root.explanation);
  return root;
}

Error bad_rehearsal(
    const std::string& message,
    const std::string& hint = "make it again with nanquest-trainer rehearse or nanquest rehearse") {
  return {ErrorCode::bad_file, "rehearsal: " + message, hint};
}

}  // namespace

std::string to_json(const Rehearsal& r) {
  Ordered runs = Ordered::array();
  for (const RehearsedRun& run : r.runs) runs.push_back(run_json(run));
  const Ordered j = {{"format", kFormat},
                     {"version", kRehearsalVersion},
                     {"snapshot", r.snapshot},
                     {"step", r.step},
                     {"rank", r.rank},
                     {"program", r.program},
                     {"began", r.began},
                     {"horizon", r.horizon},
                     {"as_recorded", or_null(r.as_recorded)},
                     {"again", or_null(r.again)},
                     {"growth", r.growth},
                     {"runs", runs},
                     {"spread", {{"failed_steps", r.failed_steps}, {"loss", numbers(r.loss)}}},
                     {"root", r.root ? root_json(*r.root) : Ordered(nullptr)},
                     {"not_tried", r.not_tried}};
  return j.dump(2, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

Result<Rehearsal> rehearsal_from_json(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object()) return bad_rehearsal("not a JSON object");
  std::string wrong, format;
  std::int64_t version = 0;
  const Fields fields(j, "", wrong);
  fields.take("format", format);
  if (format != kFormat) return bad_rehearsal(std::string("\"format\" is not \"") + kFormat + "\"");
  fields.take("version", version);
  if (version < 1) return bad_rehearsal("it has no version");
  if (version > kRehearsalVersion)
    return bad_rehearsal("of version " + std::to_string(version) + ", this program knows version " +
                             std::to_string(kRehearsalVersion),
                         "use a newer nanquest");
  Rehearsal r;
  fields.take("snapshot", r.snapshot);
  fields.take("step", r.step);
  fields.take("rank", r.rank);
  fields.take("program", r.program);
  fields.take("began", r.began);
  fields.take("horizon", r.horizon);
  fields.take("as_recorded", r.as_recorded);
  fields.take("again", r.again);
  fields.take("growth", r.growth);
  fields.list("runs", [&](const Fields& f) { r.runs.push_back(run_from(f)); });
  fields.object("spread", [&](const Fields& f) {
    f.take("failed_steps", r.failed_steps);
    take_numbers(f, "loss", r.loss);
  });
  fields.object("root", [&](const Fields& f) { r.root = rehearsed_root_from(f); });
  fields.take("not_tried", r.not_tried);
  if (!wrong.empty()) return bad_rehearsal(wrong);
  return r;
}

}  // namespace nanquest
