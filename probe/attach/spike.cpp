// A finite step far out of its run's band: an incident of its own kind, with one file for the whole
// excursion.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "probe/attach/pages.h"
#include "probe/step/what_moved.h"

namespace nanquest::attach {
namespace {

/// Of the files that incidents may have, spikes may have one in this many besides: a failure that comes later
/// needs its own.
constexpr int kShareOfFiles = 4;

std::string in_words(const Band::Range& usual) {
  if (usual.edge == 0) return "";  // there is no band
  char text[64];
  std::snprintf(text, sizeof text, usual.low < usual.high ? "%.3g to %.3g" : "%.3g", usual.low, usual.high);
  return text;
}

Facts facts_of(const BandNews& news, double loss, double norm) {
  Facts facts;
  if (news.loss)
    facts.push_back(
        {.kind = Fact::spike, .name = "the loss", .more = in_words(news.usual_loss), .value = loss});
  if (news.norm)
    facts.push_back({.kind = facts.empty() ? Fact::spike : Fact::spike_too,
                     .name = "the gradient norm",
                     .more = in_words(news.usual_norm),
                     .value = norm});
  return facts;
}

std::optional<SpikeFigure> figure_of(const Band::Range& usual, double value, bool out) {
  if (usual.edge == 0 || !std::isfinite(value)) return std::nullopt;
  return SpikeFigure{value, out, usual.low, usual.middle, usual.high, usual.back, usual.edge};
}

SpikeNote note_of(const BandNews& news, double loss, double norm) {
  return {news.kind == BandNews::diverged, news.since, figure_of(news.usual_loss, loss, news.loss),
          figure_of(news.usual_norm, norm, news.norm)};
}

}  // namespace

void AttachSession::report_spike(const Awaited& look, const GateResult& seen, StepAnswer& answer, bool late) {
  using enum AttachOptions::OnSpike;
  const BandNews& news = history_.news();
  if (options_.on_spike == off || !news.outside() || machine_.reported(look.step)) return;
  answer.spiking = true;
  answer.skip |= options_.on_spike == skip && !late;
  if (news.kind == BandNews::goes_on) return;
  const double clip_norm = look.look.number(kClipNorm).value_or(look.clip_norm);
  const double norm = std::isnan(clip_norm) ? seen.norm : clip_norm;
  Facts told = facts_of(news, seen.loss, norm);
  if (news.kind == BandNews::diverged) {
    told = {{.kind = Fact::diverged,
             .name = in_words(news.usual_loss),
             .more = what_moved(history_.tables(), news.since),
             .since = news.since,
             .value = seen.loss}};
  }
  told.front().step = look.step;
  answer.spike = true;
  // The file of the excursion's first step is there already.
  const bool known = news.kind == BandNews::diverged && spike_told_ == news.since;
  spike_told_ = news.since;
  if (known) {
    ManifestFinding finding;
    finding.step = look.step;
    finding.kind = "divergence";
    finding.label = "DIVERGENCE";
    finding.text = text_of(told);
    const Status noted = log_.found(std::move(finding));
    if (!noted) told.push_back({Fact::manifest_not_written, noted.error().text()});
    return add(answer.told, std::move(told));
  }
  ++spikes_;
  answer.incident = true;
  answer.stops = false;
  writer_.begin_spike(look.step);
  answer.file = write_spike(note_of(news, seen.loss, norm), look, told, late);
  add(told, writer_.end(Gate::spike, answer.file, told));
  add(answer.told, std::move(told));
}

std::string AttachSession::write_spike(const SpikeNote& note, const Awaited& look, Facts& told, bool late) {
  if (options_.probe.level < Level::trace) {
    told.push_back({Fact::level_keeps_none});
    return "";
  }
  const int allowed = options_.probe.max_incidents;
  const int most = std::min(allowed, std::max(1, allowed / kShareOfFiles));
  if (spike_files_ >= most) {
    told.push_back({.kind = Fact::files_used_up, .number = spike_files_});
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
  spike_files_ += file.empty() ? 0 : 1;
  return file;
}

}  // namespace nanquest::attach
