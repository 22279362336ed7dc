// The file "nanquest.rehearsal": each member once, for writer and reader.
#include "replay/verdict/fields.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest {

constexpr JsonHead kRehearsalHead = {
    .format = "nanquest.rehearsal",
    .name = "rehearsal",
    .version = kRehearsalVersion,
    .again = "make it again with nanquest-trainer rehearse or nanquest rehearse"};

void describe(auto& file, As<RehearsedRun> auto& run) {
  file.field("kind", run.kind);
  file.field("change", run.change);
  file.field("first_step", run.first_step);
  file.field("losses", run.losses);
  file.field("failed_step", run.failed_step);
  file.field("failure", run.failure);
  file.field("ended_itself", run.ended_itself);
  file.field("not_tried", run.not_tried);
  file.field("doubt", run.doubt);
  file.field("mean", run.mean);
  file.field("end_mean", run.end_mean);
  file.field("outlives", run.outlives);
  file.field("learns", run.learns);
  file.field("cures", run.cures);
  file.field("remark", run.remark);
}

void describe(auto& file, As<RehearsedRoot> auto& root) {
  file.field("cause", root.cause);
  file.field("change", root.change);
  file.field("cured", root.cured);
  file.field("tried", root.tried);
  file.field("steps", root.steps);
  file.derived(true, "scope", Scope::run);
  file.field("verified", root.verified);
  file.field("explanation", root.explanation);
}

void describe(auto& file, As<Rehearsal> auto& r) {
  file.field("snapshot", r.snapshot);
  file.field("step", r.step);
  file.field("rank", r.rank);
  file.field("program", r.program);
  file.field("began", r.began);
  file.field("horizon", r.horizon);
  file.field("as_recorded", r.as_recorded);
  file.field("again", r.again);
  file.field("growth", r.growth);
  file.field("runs", r.runs);
  file.group("spread", [&](auto& spread) {
    spread.field("failed_steps", r.failed_steps);
    spread.field("loss", r.loss);
  });
  file.field("root", r.root);
  file.field("not_tried", r.not_tried);
}

std::string to_json(const Rehearsal& rehearsal) {
  return json_text(kRehearsalHead, rehearsal);
}

Result<Rehearsal> rehearsal_from_json(const std::string& text) {
  return json_value<Rehearsal>(kRehearsalHead, text);
}

}  // namespace nanquest
