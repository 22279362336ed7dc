#include "viewer/app/choose.h"

#include <algorithm>

#include "viewer/model/numbers.h"
#include "viewer/model/smoothing.h"

namespace nanquest::viewer {
namespace {

/// Whether there is more to show of the selected incident than an error.
bool knows_something(const Session& session) {
  return session.incident() != nullptr || session.verdict() ||
         (session.entry() != nullptr && session.entry()->snapshot != Snapshot::here);
}

}  // namespace

Status select(Session& session, const Arguments& a) {
  const auto no = [](const std::string& what, const std::string& hint) {
    return Status(Error{ErrorCode::usage, what, hint});
  };
  if (a.step) {
    bool found = false;
    for (const IncidentEntry& e : session.incidents()) found = found || e.files.step == *a.step;
    if (!found)
      return no("there is no incident at step " + std::to_string(*a.step), "--text runs lists them");
    session.select_step(static_cast<double>(*a.step));
    if (!knows_something(session)) return Error{ErrorCode::bad_file, session.incident_error(), ""};
  }
  if (a.op) {
    const std::size_t ops = session.incident() ? session.incident()->trace.size() : 0;
    if (*a.op < 0 || static_cast<std::uint64_t>(*a.op) >= ops)
      return no("there is no op " + std::to_string(*a.op), "the trace holds " + counted(ops, "op"));
    session.select_op(static_cast<std::int32_t>(*a.op));
  }
  if (!a.layer.empty() && !session.has_layer(a.layer))
    return no("there is no layer \"" + a.layer + "\"", "--text norms lists them");
  if (!a.layer.empty()) session.select_layer(a.layer);
  if (!a.tensor.empty()) {
    std::string path;
    if (session.incident() != nullptr)
      for (const StoredTensor& t : session.incident()->tensors)
        if (path.empty() && (t.path == a.tensor || t.name == a.tensor)) path = t.path;
    if (path.empty())
      return no("there is no stored tensor \"" + a.tensor + "\"", "give its name or its path in the file");
    session.select_tensor(path);
  }
  if (a.element) {
    if (*a.element >= 0) session.select_element(static_cast<std::uint64_t>(*a.element));
    if (*a.element < 0 || session.selection().element != *a.element)
      return no("there is no element " + std::to_string(*a.element) + " in the selected tensor",
                "--text tensor says how many it has; --tensor selects another");
  }
  if (!a.what_if.empty()) {
    const Result<WhatIf> what = what_if_from(a.what_if);
    if (!what) return what.error();
    session.select_what_if(*what);
  }
  if (!(a.smooth >= 0 && a.smooth <= kMostSmoothing))
    return no("--smooth " + exact_number(a.smooth) + " is no weight",
              "give 0 to " + exact_number(kMostSmoothing));
  if (a.smooth > 0) session.select_smoothing(a.smooth);
  if (a.statistic.empty()) return {};
  if (const auto statistic = statistic_from_name(a.statistic)) {
    session.select_statistic(*statistic);
    return {};
  }
  return no("there is no statistic \"" + a.statistic + "\"",
            "choose grad_norm, weight_norm, update_ratio, grad_amax or weight_amax");
}

Status check_folder(const Session& session, const Arguments& a, Panel panel) {
  const bool selects = a.step || a.op || a.element || !a.layer.empty() || !a.tensor.empty() ||
                       !a.what_if.empty() || !a.statistic.empty() || !a.compare.empty();
  const bool lists = a.report.empty() && (panel == Panel::all || panel == Panel::runs);
  if (lists && !selects) return {};
  if (session.diff() != nullptr)
    return Error{ErrorCode::usage, session.path() + ": is a comparison of two steps",
                 "--text, --csv runs and --screenshot show it; nanquest diff --html writes a page"};
  return Error{ErrorCode::usage,
               session.path() + ": is a folder of " + counted(session.folder()->runs.size(), "run"),
               "give one of them; --text lists them"};
}

Status check_shown(const Session& session, Panel panel) {
  const auto lacks = [&](const PanelInfo& info) {
    if (info.panel != panel) return false;
    return info.needs == Needs::snapshot || (info.needs == Needs::verdict && !knows_something(session));
  };
  if (std::ranges::none_of(all_panels(), lacks) || session.incident() != nullptr ||
      session.incident_error().empty())
    return {};
  return Error{ErrorCode::bad_file, session.incident_error(), ""};
}

}  // namespace nanquest::viewer
