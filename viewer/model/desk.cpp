#include "viewer/model/desk.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "probe/numerics/hash.h"
#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/fields.h"
#include "viewer/model/kept.h"
#include "viewer/model/path_words.h"
#include "viewer/model/settings.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using verdict_file::Fields;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "nanquest.desk";
constexpr std::int64_t kDeskVersion = 1;
constexpr std::size_t kMostDeskBytes = std::size_t{16} << 20;
constexpr Link::Kind kKinds[] = {Link::Kind::op,     Link::Kind::layer,  Link::Kind::step,
                                 Link::Kind::sample, Link::Kind::tensor, Link::Kind::place};

Json json_of(const IncidentName& name) {
  return {{"step", name.step}, {"rank", name.rank}, {"attempt", name.attempt}};
}

Json json_of(const Selection& s) {
  return {{"op", s.op},         {"layer", s.layer},     {"step", s.step},
          {"tensor", s.tensor}, {"element", s.element}, {"what_if", what_if_word(s.what_if)},
          {"sample", s.sample}, {"place", s.place},     {"statistic", statistic_table(s.statistic)}};
}

Json json_of(const Note& note) {
  Json json = {
      {"text", note.text}, {"incident", json_of(note.incident)}, {"kind", kind_name(note.place.kind)}};
  if (note.place.number != kNone) json["number"] = note.place.number;
  if (!note.place.name.empty()) json["name"] = note.place.name;
  if (note.place.statistic) json["statistic"] = statistic_table(*note.place.statistic);
  return json;
}

void take(const Fields& from, IncidentName& name) {
  from.take("step", name.step);
  from.take("rank", name.rank);
  from.take("attempt", name.attempt);
}

/// A word that nobody knows leaves what it stands for as it is: it may be of a later version.
void take(const Fields& from, Selection& s) {
  std::string what_if, statistic;
  from.take("op", s.op);
  from.take("layer", s.layer);
  from.take("step", s.step);
  from.take("tensor", s.tensor);
  from.take("element", s.element);
  from.take("what_if", what_if);
  from.take("sample", s.sample);
  from.take("place", s.place);
  from.take("statistic", statistic);
  if (const auto known = what_if_from(what_if)) s.what_if = *known;
  s.statistic = statistic_from_name(statistic).value_or(s.statistic);
  s.op = std::max(s.op, kNone);
  s.element = std::max<std::int64_t>(s.element, -1);
  s.sample = std::max<std::int64_t>(s.sample, -1);
}

void take(const Fields& from, Note& note) {
  std::string kind, statistic;
  from.take("text", note.text);
  from.object("incident", [&](const Fields& name) { take(name, note.incident); });
  from.take("kind", kind);
  from.take("number", note.place.number);
  from.take("name", note.place.name);
  from.take("statistic", statistic);
  for (const Link::Kind known : kKinds)
    if (kind == kind_name(known)) note.place.kind = known;
  note.place.statistic = statistic_from_name(statistic);
}

/// "" if all of it could be taken.
std::string take_all(const nlohmann::json& json, Desk& desk) {
  std::string wrong, format;
  std::int64_t version = 0;
  const Fields fields(json, "", wrong);
  fields.take("format", format);
  fields.take("version", version);
  if (wrong.empty() && format != kFormat) return "no file of this kind";
  if (wrong.empty() && version != kDeskVersion)
    return "version " + std::to_string(version) + " is not " + std::to_string(kDeskVersion);
  std::vector<double> steps;
  fields.take("layout", desk.layout);
  fields.take("theme", desk.theme);
  fields.take("front", desk.front);
  fields.take("steps", steps);
  if (steps.size() == 2 && steps[0] < steps[1]) desk.steps = {steps[0], steps[1]};
  fields.object("first", [&](const Fields& name) { take(name, desk.first); });
  fields.object("shown", [&](const Fields& name) { take(name, desk.shown); });
  fields.object("selection", [&](const Fields& s) { take(s, desk.selection.emplace()); });
  fields.list("notes", [&](const Fields& note) { take(note, desk.notes.emplace_back()); });
  return wrong;
}

}  // namespace

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
  // A hash tells runs of one name apart; the name is for a person who looks into the folder.
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
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  Desk desk;
  const std::string wrong = json.is_object() ? take_all(json, desk) : "not JSON";
  if (wrong.empty()) return desk;
  return Error{ErrorCode::bad_file, path + ": " + wrong, "move it away, and what it kept is forgotten"};
}

Status write_desk(const std::string& folder, const Session& session, const Desk& desk) {
  const std::string path = desk_path(folder, session.path());
  if (path.empty() || desk.unreadable) return {};
  if (Status may = may_write(session, path); !may) return may;
  Json json = {{"format", kFormat},     {"version", kDeskVersion}, {"run", whole_path(session.path())},
               {"layout", desk.layout}, {"theme", desk.theme},     {"front", desk.front}};
  if (desk.steps) json["steps"] = {desk.steps->first, desk.steps->second};
  json["first"] = json_of(desk.first);
  json["shown"] = json_of(desk.shown);
  if (desk.selection) json["selection"] = json_of(*desk.selection);
  json["notes"] = Json::array();
  for (const Note& note : desk.notes) json["notes"].push_back(json_of(note));
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return write_file_atomically(path, text, Durable::soon);
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
