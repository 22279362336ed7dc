#include "probe/snapshot/rank_row.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array<const char*, 4> kStandings = {"unknown", "arrived", "loss bad", "made here"};
/// A row is written with one call and read with one.
constexpr std::size_t kMaxText = 1024, kMaxLine = 4096;

std::string in_incidents(const std::string& run_dir, const std::string& name) {
  return (fs::path(incidents_dir(run_dir)) / name).string();
}

std::string dotted(const std::string& attempt) {
  return attempt.empty() ? "" : "." + attempt;
}

template <class T>
bool take_field(const Json& object, const char* key, T& into) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  into = found->get<T>();
  return true;
}

}  // namespace

std::string rank_row_path(const std::string& run_dir, std::int64_t step, std::int32_t rank,
                          const std::string& attempt) {
  return in_incidents(run_dir, rank_stem(step, rank) + dotted(attempt) + ".row");
}

std::string first_rank_path(const std::string& run_dir, std::int64_t step, const std::string& attempt) {
  return in_incidents(run_dir, step_stem(step) + dotted(attempt) + ".first");
}

std::string to_line(const RankRow& row) {
  Json json{{"step", row.step},
            {"rank", row.rank},
            {"world_size", row.world_size},
            {"standing", kStandings[static_cast<std::size_t>(row.standing)]},
            {"collectives", row.collectives},
            {"text", row.text.substr(0, kMaxText)}};
  if (row.first >= 0) json["first"] = row.first;
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

std::optional<RankRow> rank_row_from(const std::string& line) {
  if (line.empty() || line.back() != '\n') return std::nullopt;
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  RankRow row;
  if (!json.is_object() || !take_field(json, "step", row.step) || !take_field(json, "rank", row.rank) ||
      !take_field(json, "world_size", row.world_size) || !take_field(json, "collectives", row.collectives) ||
      !json.contains("standing") || !json["standing"].is_string())
    return std::nullopt;
  for (std::size_t i = 0; i < kStandings.size(); ++i)
    if (json["standing"] == kStandings[i]) row.standing = static_cast<Standing>(i);
  if (json.contains("text") && json["text"].is_string()) row.text = json["text"].get<std::string>();
  (void)take_field(json, "first", row.first);
  if (row.rank < 0 || row.world_size < 1 || row.rank >= row.world_size) return std::nullopt;
  return row;
}

std::optional<RankRow> read_rank_row(const std::string& path) {
  const auto text = read_whole_file(path, kMaxLine);
  return text ? rank_row_from(*text) : std::nullopt;
}

std::map<std::int32_t, RankRow> rank_rows_beside(const std::string& snapshot, std::size_t most) {
  std::map<std::int32_t, RankRow> rows;
  const auto self = parse_incident_name(snapshot);
  if (!self) return rows;
  const fs::path directory = fs::path(snapshot).parent_path();
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator at(directory.empty() ? "." : directory, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".row") continue;
    const auto file = parse_step_file(at->path().string());
    if (file && file->rank >= 0 && file->step == self->step) found.push_back(at->path());
  }
  // "….r7.row" before "….r7.2.row" before "….r7.10.row".
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const std::string one = a.stem().string(), other = b.stem().string();
    return std::make_pair(one.size(), one) < std::make_pair(other.size(), other);
  });
  for (const fs::path& path : found) {
    const std::optional<RankRow> row = read_rank_row(path.string());
    if (!row || row->step != self->step) continue;
    if (rows.size() >= most && !rows.count(row->rank)) continue;
    rows[row->rank] = *row;
  }
  return rows;
}

}  // namespace nanquest
