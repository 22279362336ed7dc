// A finite step far out of its run's band: an incident of its own kind, with one file for the whole
// excursion.
#include <cmath>
#include <optional>
#include <utility>

#include "probe/attach/pages.h"

namespace nanquest::attach {

void AttachSession::report_spike(const Awaited& look, const GateResult& seen, StepAnswer& answer, bool late) {
  const BandNews& news = history_.news();
  if (!excursions_.heeds(news) || machine_.reported(look.step)) return;
  answer.spiking = true;
  answer.skip |= excursions_.skips() && !late;
  if (news.kind == BandNews::goes_on) return;
  const double clip_norm = look.look.number(kClipNorm).value_or(look.clip_norm);
  const double norm = std::isnan(clip_norm) ? seen.norm : clip_norm;
  Facts told = Excursions::facts(news, look.step, seen.loss, norm, history_.tables());
  answer.spike = true;
  if (!excursions_.begins(news)) {  // the file of the excursion's first step is there already
    ManifestFinding finding;
    finding.step = look.step;
    finding.kind = "divergence";
    finding.label = "DIVERGENCE";
    finding.text = text_of(told);
    const Status noted = log_.found(std::move(finding));
    if (!noted) told.push_back({Fact::manifest_not_written, noted.error().text()});
    return add(answer.told, std::move(told));
  }
  answer.incident = true;
  answer.stops = false;
  writer_.begin_spike(look.step);
  answer.file = write_spike(Excursions::note(news, seen.loss, norm), look, told, late);
  add(told, writer_.end(Gate::spike, answer.file, told));
  add(answer.told, std::move(told));
}

std::string AttachSession::write_spike(const SpikeNote& note, const Awaited& look, Facts& told, bool late) {
  if (options_.probe.level < Level::trace) {
    told.push_back({Fact::level_keeps_none});
    return "";
  }
  if (!excursions_.has_file_left()) {
    told.push_back({.kind = Fact::files_used_up, .number = excursions_.files()});
    return "";
  }
  const Rounds::Kept* const over = late && rounds_ ? rounds_->kept(look.round) : nullptr;
  std::optional<Pages> pages;
  if (over)
    pages.emplace(*this, *rounds_->of(*over), over->facts);
  else if (!late && on_record())
    pages.emplace(*this, *rounds_->now(), facts_of_round());
  if (!pages) {
    told.push_back({look.graph_ran ? Fact::graph_ran : Fact::nothing_recorded});
    return "";
  }
  std::string file = writer_.write({Gate::spike, note.loss && note.loss->out, note}, *pages, told);
  if (!file.empty()) excursions_.wrote_file();
  return file;
}

}  // namespace nanquest::attach
