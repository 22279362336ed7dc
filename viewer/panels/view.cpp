#include "viewer/panels/view.h"

#include <memory>
#include <utility>

#include "viewer/model/settings.h"

namespace nanquest::viewer {

void UiState::read(Loader::Errand errand) {
  if (loader != nullptr) return loader->ask(session, std::move(errand));
  if (errand.work(session) && errand.done) errand.done();
}

std::string UiState::name_of(int row) const {
  const std::vector<IncidentEntry>& incidents = session.incidents();
  const bool known = row >= 0 && row < static_cast<int>(incidents.size());
  return known ? "step " + std::to_string(incidents[static_cast<std::size_t>(row)].files.step) : "the run";
}

void UiState::open(const std::string& path) {
  const auto why = std::make_shared<std::string>(), besides = std::make_shared<std::string>();
  const auto work = [path, why, besides, settings = options.settings](Session& shown) {
    Result<Session> other = Session::open(path, shown.progress());
    if (!other) {
      *why = other.error().text();
      return true;
    }
    shown = std::move(other).value();
    if (const Status noted = note_recent(settings, path); !noted)
      *besides = "; it is not kept among the recent runs: " + noted.error().text();
    return true;
  };
  const auto done = [this, path, why, besides] {
    message = why->empty() ? "Opened " + path + *besides : *why;
    if (why->empty() && on_other_run) on_other_run();
  };
  read({path, work, done, true});
}

void UiState::fit_steps() {
  if (const auto span = session.steps_shown()) steps.fit(span->first, span->second);
}

void UiState::compare(const std::string& path) {
  const auto status = std::make_shared<Status>();
  const auto work = [path, status](Session& shown) {
    *status = shown.compare_with(path);
    return true;
  };
  read({path.empty() ? "the run" : path, work, [this, status] {
          const Comparison* comparison = session.comparison();
          message = !*status                ? status->error().text()
                    : comparison == nullptr ? "One run is shown"
                                            : comparison->headline();
        }});
}

void UiState::go(const Link& link) {
  wanted = panel_of(link.kind);
  if (link.kind == Link::Kind::step) return select_step(static_cast<double>(link.number));
  later.push_back([this, link] { viewer::follow(session, link); });
}

void UiState::select_step(double step, const std::string& layer) {
  later.push_back([this, step, layer] {
    const auto select = [step, layer](Session& shown) {
      shown.select_step(step);
      if (!layer.empty()) shown.select_layer(layer);
      return true;
    };
    if (session.opens_another(step))
      read({"step " + std::to_string(static_cast<std::int64_t>(step)), select, {}, true});
    else
      select(session);
  });
}

void UiState::select_incident(int row) {
  later.push_back([this, row] {
    const auto select = [row](Session& shown) {
      shown.select_incident(row);
      return true;
    };
    read({name_of(row), select, {}, true});
  });
}

void UiState::restore(const Selection& before) {
  if (before.incident == session.selection().incident) return session.restore(before);
  const auto back = [before](Session& shown) {
    shown.restore(before);
    return true;
  };
  read({name_of(before.incident), back, {}, true});
}

}  // namespace nanquest::viewer
