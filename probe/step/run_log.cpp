#include "probe/step/run_log.h"

#include <filesystem>
#include <fstream>

#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostListed = 1000;
constexpr auto kWriteEvery = std::chrono::seconds(1);

const char* gate_name(Gate gate) {
  switch (gate) {
    case Gate::ok:
      return "ok";
    case Gate::scale_overflow:
      return "scale_overflow";
    case Gate::non_finite:
      return "non_finite";
    case Gate::spike:
      return "spike";
  }
  return "";
}

/// The command line of this process, words with spaces in quotes; "" if /proc does not have it.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line, word;
  while (std::getline(file, word, '\0')) {
    if (!line.empty()) line += ' ';
    line += word.find_first_of(" \t\n") == std::string::npos ? word : "'" + word + "'";
  }
  return line;
}

}  // namespace

Result<RunLog> RunLog::create(const ProbeOptions& options) {
  Result<RunClaim> claim = RunClaim::take(options.run_dir, options.rank, options.resume);
  if (!claim) return claim.error();
  Manifest manifest;
  manifest.created = utc_now();
  if (options.resume)
    if (Result<Manifest> before = read_manifest(options.run_dir)) manifest = std::move(before).value();
  manifest.nanquest = NANQUEST_VERSION;
  manifest.command = command_line();
  manifest.config = options.config;
  manifest.rank = options.rank;
  manifest.world_size = options.world_size;
  manifest.status = "running";
  manifest.outcome.clear();
  RunLog log(std::move(claim).value(), options.run_dir, std::move(manifest));
  if (const Status written = log.write(Durable::now); !written) return written.error();
  return log;
}

Status RunLog::write(Durable durable) {
  written_ = Clock::now();
  if (manifest_.rank != 0) return {};  // one file for all ranks
  return write_manifest(run_dir_, manifest_, durable);
}

std::string RunLog::relative(const std::string& path) const {
  return path.empty() ? path : std::filesystem::path(path).lexically_relative(run_dir_).string();
}

void RunLog::removed(const std::string& path, std::uint64_t bytes, const std::string& why) {
  const std::string file = relative(path);
  if (manifest_.removed.size() < kMostListed) manifest_.removed.push_back({file, bytes, why});
  (void)write(Durable::soon);
}

Status RunLog::incident(std::int64_t step, Gate gate, const std::string& path, const std::string& summary,
                        bool muted) {
  const std::string file = relative(path);
  if (manifest_.incidents.size() >= kMostListed && file.empty()) return {};
  manifest_.incidents.push_back({step, manifest_.rank, file, gate_name(gate), summary, 0, muted});
  if (file.empty() && Clock::now() - written_ < kWriteEvery) return {};
  return write(Durable::soon);  // the snapshots themselves are on the disk; training waits for this
}

void RunLog::carried_on(std::int64_t steps) {
  if (manifest_.incidents.empty()) return;
  manifest_.incidents.back().carried_on = steps;
  if (Clock::now() - written_ >= kWriteEvery) (void)write(Durable::soon);
}

void RunLog::repeated(std::int64_t steps) {
  if (manifest_.incidents.empty()) return;
  manifest_.incidents.back().repeated = steps;
  if (Clock::now() - written_ >= kWriteEvery) (void)write(Durable::soon);
}

Status RunLog::forecast(ManifestForecast told) {
  if (manifest_.forecasts.size() >= kMostListed) return {};
  told.rank = manifest_.rank;
  manifest_.forecasts.push_back(std::move(told));
  return write(Durable::soon);
}

Status RunLog::replicas_differ(ManifestReplicas told) {
  if (manifest_.replicas.size() >= kMostListed) return {};
  manifest_.replicas.push_back(std::move(told));
  return write(Durable::soon);
}

Status RunLog::found(ManifestFinding finding) {
  if (manifest_.findings.size() >= kMostListed) return {};
  finding.rank = manifest_.rank;
  manifest_.findings.push_back(std::move(finding));
  return write(Durable::soon);
}

Status RunLog::end(const std::string& status, const std::string& outcome) {
  manifest_.status = status;
  manifest_.outcome = outcome;
  return write(Durable::now);
}

}  // namespace nanquest
