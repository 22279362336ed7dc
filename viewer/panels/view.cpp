#include "viewer/panels/view.h"

#include <memory>
#include <utility>

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

void UiState::open_beside(const std::string& path, const std::vector<std::string>& beside) {
  const auto why = std::make_shared<std::string>();
  const auto arrival = std::make_shared<Arrival>();
  const Desk desk = left ? left() : Desk();
  const auto work = [path, beside, why, arrival, desk, folders = options.folders](Session& shown) {
    const Status kept = has_desk(shown) ? write_desk(folders.state, shown, desk) : Status();
    Result<Opening> other = open_as_left(path, folders, shown.progress());
    if (!other) {
      *why = other.error().text();
      return true;
    }
    *why = kept ? other->trouble : kept.error().text();
    other->session.report_to(shown.progress());
    if (const Status put = other->session.compare_with(beside); !put) *why = put.error().text();
    other->session.report_to(nullptr);
    *arrival = {std::move(other->desk), other->resumed, true};
    shown = std::move(other->session);
    return true;
  };
  const auto done = [this, path, why, arrival] {
    const bool opened = arrival->there;
    message = !opened ? *why : "Opened " + path + (why->empty() ? "" : "; " + *why);
    if (!opened) return;
    if (on_other_run) on_other_run();
    arrived = std::move(*arrival);
  };
  read({path, work, done, true});
}

void UiState::replay(ReplayTask task) {
  if (!may_replay(session)) return;
  const IncidentFiles& files = session.entry()->files;
  const Status started = replaying.start(task, files.snapshot, "step " + std::to_string(files.step));
  message = started ? "" : started.error().message;
}

void UiState::keep_desk() {
  if (options.folders.state.empty() || !left) return;
  const auto why = std::make_shared<std::string>();
  const auto write = [desk = left(), why, folder = options.folders.state](Session& shown) {
    const Status kept = write_desk(folder, shown, desk);
    if (!kept) *why = kept.error().text();
    return !kept;
  };
  read({"notes", write, [this, why] { message = *why; }, false, /*quiet=*/true});
}

void UiState::fit_steps() {
  if (const auto span = session.steps_shown()) steps.fit(span->first, span->second);
}

void UiState::compare(const std::string& path) {
  const auto status = std::make_shared<Status>();
  const auto work = [path, status](Session& shown) {
    std::vector<std::string> paths;
    for (const auto& other : shown.others())
      if (!path.empty()) paths.push_back(other->path());
    if (!path.empty()) paths.push_back(path);
    *status = shown.compare_with(paths);
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

void UiState::go(const Note& note) {
  wanted = panel_of(note.place.kind);
  later.push_back([this, note] {
    const int row = row_of(session, note.incident);
    const bool other = row >= 0 && row != session.selection().incident;
    const auto select = [note, row, other](Session& shown) {
      if (other) shown.select_incident(row);
      viewer::follow(shown, note.place);
      return true;
    };
    const bool is_step = note.place.kind == Link::Kind::step;
    if (other || (is_step && session.opens_another(static_cast<double>(note.place.number))))
      read({note.where(), select, {}, true});
    else
      select(session);
  });
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
