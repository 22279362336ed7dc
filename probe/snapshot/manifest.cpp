#include "probe/snapshot/manifest.h"

#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "nanquest.run";
constexpr int kMajor = 1;
constexpr const char* kVersion = "1.0";
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

json to_json(const Manifest& m) {
  json incidents = json::array();
  for (const ManifestIncident& i : m.incidents)
    incidents.push_back({{"step", i.step},
                         {"rank", i.rank},
                         {"file", i.file},
                         {"gate", i.gate},
                         {"summary", i.summary},
                         {"carried_on", i.carried_on},
                         {"muted", i.muted},
                         {"repeated", i.repeated}});
  json removed = json::array();
  for (const ManifestRemoval& r : m.removed)
    removed.push_back({{"file", r.file}, {"bytes", r.bytes}, {"why", r.why}});
  json forecasts = json::array();
  for (const ManifestForecast& f : m.forecasts)
    forecasts.push_back({{"step", f.step},
                         {"rank", f.rank},
                         {"text", f.text},
                         {"place", f.place},
                         {"bits", f.bits},
                         {"steps", f.steps},
                         {"earliest", f.earliest},
                         {"latest", f.latest}});
  json replicas = json::array();
  for (const ManifestReplicas& r : m.replicas)
    replicas.push_back({{"step", r.step}, {"ranks", r.ranks}, {"tensor", r.tensor}, {"text", r.text}});
  json findings = json::array();
  for (const ManifestFinding& f : m.findings)
    findings.push_back({{"step", f.step},
                        {"rank", f.rank},
                        {"kind", f.kind},
                        {"label", f.label},
                        {"tensor", f.tensor},
                        {"file", f.file},
                        {"text", f.text}});
  return {{"format", kFormat},      {"format_version", kVersion}, {"created", m.created},
          {"nanquest", m.nanquest}, {"command", m.command},       {"config", m.config},
          {"rank", m.rank},         {"world_size", m.world_size}, {"status", m.status},
          {"outcome", m.outcome},   {"incidents", incidents},     {"forecasts", forecasts},
          {"replicas", replicas},   {"findings", findings},       {"removed", removed}};
}

Manifest from_json(const json& j) {
  Manifest m;
  m.format_version = j.at("format_version").get<std::string>();
  m.created = j.value("created", "");
  m.nanquest = j.value("nanquest", "");
  m.command = j.value("command", "");
  m.config = j.value("config", std::map<std::string, std::string>{});
  m.rank = j.value("rank", 0);
  m.world_size = j.value("world_size", 1);
  m.status = j.value("status", "");
  m.outcome = j.value("outcome", "");
  for (const json& i : j.value("incidents", json::array()))
    m.incidents.push_back({i.at("step").get<std::int64_t>(), i.value("rank", 0), i.value("file", ""),
                           i.value("gate", ""), i.value("summary", ""),
                           i.value("carried_on", std::int64_t{0}), i.value("muted", false),
                           i.value("repeated", std::int64_t{0})});
  for (const json& r : j.value("removed", json::array()))
    m.removed.push_back({r.value("file", ""), r.value("bytes", std::uint64_t{0}), r.value("why", "")});
  for (const json& r : j.value("replicas", json::array()))
    m.replicas.push_back({r.at("step").get<std::int64_t>(), r.value("ranks", std::vector<std::int32_t>{}),
                          r.value("tensor", ""), r.value("text", "")});
  for (const json& f : j.value("findings", json::array()))
    m.findings.push_back({f.at("step").get<std::int64_t>(), f.value("rank", 0), f.value("kind", ""),
                          f.value("label", ""), f.value("tensor", ""), f.value("file", ""),
                          f.value("text", "")});
  for (const json& f : j.value("forecasts", json::array()))
    m.forecasts.push_back({f.at("step").get<std::int64_t>(), f.value("rank", 0), f.value("text", ""),
                           f.value("place", ""), f.value("bits", 0.0), f.value("steps", 0.0),
                           f.value("earliest", 0.0), f.value("latest", -1.0)});
  return m;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Status write_manifest(const std::string& run_dir, const Manifest& manifest, Durable durable) try {
  return write_file_atomically(manifest_path(run_dir),
                               to_json(manifest).dump(2, ' ', false, json::error_handler_t::replace) + "\n",
                               durable);
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, manifest_path(run_dir) + ": " + e.what(), ""};
}

Result<Manifest> read_manifest(const std::string& run_dir) {
  const std::string path = manifest_path(run_dir);
  Result<std::string> text = read_whole_file(path, kMostBytes);
  if (!text) return text.error();
  try {
    const json j = json::parse(*text);
    if (!j.is_object() || j.value("format", "") != kFormat)
      return Error{ErrorCode::bad_file, path + ": not the manifest of a run", ""};
    const std::string version = j.at("format_version").get<std::string>();
    int major = -1;
    std::from_chars(version.data(), version.data() + version.size(), major);
    if (major > kMajor)
      return Error{ErrorCode::bad_file,
                   path + ": written in format " + version + ", this program reads up to 1.x",
                   "use a newer nanquest"};
    return from_json(j);
  } catch (const std::exception&) {  // the JSON library's message does not help a person
    return Error{ErrorCode::bad_file, path + ": damaged, it is no complete manifest",
                 "copy it again from where the run was written"};
  }
}

}  // namespace nanquest
