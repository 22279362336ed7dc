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

Strip strip_of(const Session& session) {
  Strip strip;
  const VerdictPage page = verdict_page(session);
  strip.cause = page.cause;
  strip.says = said(session, page);
  strip.age = session.age_text();
  const auto fact = [&](const std::string& text, std::optional<Link> link = {}) {
    if (!text.empty()) strip.facts.emplace_back(text, std::move(link));
  };
  const IncidentEntry* entry = session.entry();
  if (entry == nullptr) return strip;
  fact("step " + std::to_string(entry->files.step), Link{Link::Kind::step, entry->files.step, "", {}});
  std::string op, module;
  if (const OpenIncident* incident = session.incident(); incident && incident->doc.culprit.op != kNone) {
    const OpId culprit{incident->doc.culprit.op};
    strip.broke = Link{Link::Kind::op, culprit.row(), "", {}};
    const OpId tight = incident->trace.first_tight();
    if (tight && tight.row() < culprit.row()) strip.began = Link{Link::Kind::op, tight.row(), "", {}};
    op = get(incident->doc, culprit).name;
    module = incident->trace.module(culprit);
  } else if (session.verdict() && session.verdict()->found) {
    op = session.verdict()->culprit.op;
    module = session.verdict()->culprit.module;
  }
  fact(op, strip.broke);
  const std::string layer = session.layer_of(module);
  fact(module, layer.empty() ? strip.broke : Link{Link::Kind::layer, kNone, layer, {}});
  if (page.state == VerdictPage::State::diagnosed)
    fact(short_number(std::round(page.confidence * 100)) + " % sure");
  return strip;
}

}  // namespace nanquest::viewer
