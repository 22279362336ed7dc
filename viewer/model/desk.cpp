#include "viewer/model/desk.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <type_traits>

#include "probe/numerics/hash.h"
#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/fields.h"
#include "viewer/model/kept.h"
#include "viewer/model/path_words.h"
#include "viewer/model/settings.h"
#include "viewer/model/smoothing.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

constexpr JsonHead kDeskHead = {.format = "nanquest.desk",
                                .name = "desk",
                                .version = 1,
                                .again = "move it away, and what it kept is forgotten"};
constexpr std::size_t kMostDeskBytes = std::size_t{16} << 20;
constexpr Link::Kind kKinds[] = {Link::Kind::op,     Link::Kind::layer,  Link::Kind::step,
                                 Link::Kind::sample, Link::Kind::tensor, Link::Kind::place};

template <class T>
constexpr bool kWrites = std::is_const_v<std::remove_reference_t<T>>;

}  // namespace

/// What is stored about a run, and a readable name of the run for people who look into the folder.
struct DeskFile {
  std::string run;
  Desk desk;
};

void describe(auto& file, As<IncidentName> auto& name) {
  file.field("step", name.step);
  file.field("rank", name.rank);
  file.field("attempt", name.attempt);
}

/// An unknown word changes nothing: it may be of a later version.
void describe(auto& file, As<Selection> auto& s) {
  std::string what_if(what_if_word(s.what_if)), statistic(statistic_table(s.statistic));
  file.field("op", s.op);
  file.field("layer", s.layer);
  file.field("step", s.step);
  file.field("tensor", s.tensor);
  file.field("element", s.element);
  file.field("what_if", what_if);
  file.field("sample", s.sample);
  file.field("place", s.place);
  file.field("statistic", statistic);
  file.only_if(s.smoothing > 0, "smoothing", s.smoothing);
  if constexpr (!kWrites<decltype(s)>) {
    if (const auto known = what_if_from(what_if)) s.what_if = *known;
    s.statistic = statistic_from_name(statistic).value_or(s.statistic);
    s.op = std::max(s.op, kNone);
    s.element = std::max<std::int64_t>(s.element, -1);
    s.sample = std::max<std::int64_t>(s.sample, -1);
    s.smoothing = s.smoothing > 0 ? std::min(s.smoothing, kMostSmoothing) : 0;
  }
}

void describe(auto& file, As<Note> auto& note) {
  auto& place = note.place;
  std::string kind(kind_name(place.kind));
  std::string statistic(place.statistic ? statistic_table(*place.statistic) : "");
  file.field("text", note.text);
  file.field("incident", note.incident);
  file.field("kind", kind);
  file.only_if(place.number != kNone, "number", place.number);
  file.only_if(!place.name.empty(), "name", place.name);
  file.only_if(!statistic.empty(), "statistic", statistic);
  if constexpr (!kWrites<decltype(note)>) {
    for (const Link::Kind known : kKinds)
      if (kind == kind_name(known)) place.kind = known;
    place.statistic = statistic_from_name(statistic);
  }
}

void describe(auto& file, As<Desk> auto& desk) {
  std::vector<double> steps;
  if (desk.steps) steps = {desk.steps->first, desk.steps->second};
  file.field("layout", desk.layout);
  file.field("theme", desk.theme);
  file.field("front", desk.front);
  file.only_if(!steps.empty(), "steps", steps);
  file.field("first", desk.first);
  file.field("shown", desk.shown);
  file.only_if(desk.selection.has_value(), "selection", desk.selection);
  file.field("notes", desk.notes);
  file.only_if(!desk.together.empty(), "together", desk.together);
  if constexpr (!kWrites<decltype(desk)>)
    if (steps.size() == 2 && steps[0] < steps[1]) desk.steps = {steps[0], steps[1]};
}

void describe(auto& file, As<DeskFile> auto& kept) {
  file.field("run", kept.run);
  describe(file, kept.desk);
}

std::string Note::where() const {
  std::string words = incident.step < 0 ? "" : "step " + std::to_string(incident.step);
  if (incident.rank > 0) words += ", rank " + std::to_string(incident.rank);
  if (place.kind == Link::Kind::step && place.number == incident.step)
    return words.empty() ? "the run" : words;
  std::string what = kind_name(place.kind);
  if (place.number != kNone) what += " " + std::to_string(place.number);
  if (place.kind == Link::Kind::layer || place.kind == Link::Kind::tensor || place.kind == Link::Kind::place)
    what += " " + place.name;
  return words.empty() ? what : words + ", " + what;
}

std::string state_folder() {
  return own_folder("XDG_STATE_HOME", ".local/state");
}

std::string desk_path(const std::string& folder, const std::string& run) {
  if (folder.empty()) return "";
  const std::string whole = whole_path(run);
  // A hash distinguishes runs of the same name; the name is for people who look into the folder.
  std::string name = last_name(whole).substr(0, 80) + "-";
  const std::uint64_t hash = hash_bytes(whole.data(), whole.size());
  for (int digit = 15; digit >= 0; --digit) name += "0123456789abcdef"[hash >> (4 * digit) & 15];
  return (fs::path(folder) / "runs" / (name + ".json")).string();
}

Result<Desk> read_desk(const std::string& folder, const std::string& run) {
  const std::string path = desk_path(folder, run);
  std::error_code ec;
  if (path.empty() || !fs::exists(path, ec)) return Desk{};
  const Result<std::string> text = read_whole_file(path, kMostDeskBytes);
  if (!text) return text.error();
  Result<DeskFile> kept = json_value<DeskFile>(kDeskHead, *text);
  if (!kept) return Error{ErrorCode::bad_file, path + ": " + kept.error().message, kept.error().hint};
  return std::move(kept->desk);
}

Status write_desk(const std::string& folder, const Session& session, const Desk& desk) {
  const std::string path = desk_path(folder, session.path());
  if (path.empty() || desk.unreadable) return {};
  if (Status may = may_write(session, path); !may) return may;
  const std::string text = json_text(kDeskHead, DeskFile{whole_path(session.path()), desk});
  return write_file_atomically(path, text, Durable::soon);
}

bool has_desk(const Session& session) {
  return !session.is_nothing() || session.folder() != nullptr;
}

IncidentName shown_incident(const Session& session) {
  const IncidentEntry* entry = session.entry();
  if (entry == nullptr) return {};
  return {entry->files.step, entry->files.rank, entry->files.attempt};
}

int row_of(const Session& session, const IncidentName& incident) {
  for (std::size_t row = 0; row < session.incidents().size(); ++row) {
    const IncidentFiles& files = session.incidents()[row].files;
    if (incident == IncidentName{files.step, files.rank, files.attempt}) return static_cast<int>(row);
  }
  return -1;
}

bool take_selection(Session& session, const Desk& desk) {
  if (!desk.selection || shown_incident(session) != desk.first) return false;
  Selection selection = *desk.selection;
  selection.incident = row_of(session, desk.shown);
  if (selection.incident < 0 && desk.shown != IncidentName{}) return false;
  session.restore(selection);
  return true;
}

}  // namespace nanquest::viewer
