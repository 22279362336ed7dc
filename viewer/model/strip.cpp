#include "viewer/model/strip.h"

#include <cmath>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {
namespace {

std::string said(const Session& session, const VerdictPage& page) {
  if (page.cause) return std::string(word(*page.cause));
  switch (page.state) {
    case VerdictPage::State::not_replayed:
      return session.verdict_error().empty() ? "not replayed yet" : "its verdict can't be read";
    case VerdictPage::State::harmless:
      return "nothing harmful";
    default:
      return page.headline;
  }
}

}  // namespace

Breaks breaks_of(const Session& session) {
  Breaks out;
  const OpenIncident* incident = session.incident();
  if (incident == nullptr || incident->doc.culprit.op == kNone) return out;
  const std::int32_t culprit = incident->doc.culprit.op;
  out.broke = Link::to_op(culprit);
  const OpId tight = incident->trace.first_tight();
  if (tight && tight.row() < culprit) out.began = Link::to_op(tight.row());
  return out;
}

Strip strip_of(const Session& session) {
  Strip strip;
  const VerdictPage page = verdict_page(session);
  strip.cause = page.cause;
  strip.says = said(session, page);
  strip.age = session.age_text();
  strip.over = session.is_over();
  const auto fact = [&](const std::string& text, std::optional<Link> link = {}) {
    if (!text.empty()) strip.facts.push_back({text, std::move(link)});
  };
  const IncidentEntry* entry = session.entry();
  if (entry == nullptr) return strip;
  fact("step " + std::to_string(entry->files.step), Link::to_step(entry->files.step));
  strip.breaks = breaks_of(session);
  const std::optional<Link>& broke = strip.breaks.broke;
  std::string op, module;
  if (broke) {
    const OpId culprit{static_cast<std::int32_t>(broke->number)};
    op = get(session.incident()->doc, culprit).name;
    module = session.incident()->trace.module(culprit);
  } else if (session.verdict() && session.verdict()->found) {
    op = session.verdict()->culprit.op;
    module = session.verdict()->culprit.module;
  }
  fact(op, broke);
  const std::string layer = session.layer_of(module);
  fact(module, layer.empty() ? broke : Link::to_layer(layer));
  if (page.state == VerdictPage::State::diagnosed)
    fact("confidence " + short_number(std::round(page.confidence * 100)) + " %");
  return strip;
}

}  // namespace nanquest::viewer
