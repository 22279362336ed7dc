#include "viewer/model/run_state.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <system_error>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

std::string in_units(std::chrono::seconds age) {
  const auto s = static_cast<std::uint64_t>(std::max<std::int64_t>(age.count(), 0));
  return s < 60       ? "under a minute"
         : s < 7200   ? counted(s / 60, "minute")
         : s < 172800 ? counted(s / 3600, "hour")
                      : counted(s / 86400, "day");
}

std::chrono::seconds age_of(fs::file_time_type written) {
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - written);
}

}  // namespace

fs::file_time_type last_written(const RunListing& listing) {
  std::error_code ec;
  fs::file_time_type written = fs::last_write_time(manifest_path(listing.run_dir), ec);
  if (ec) written = fs::file_time_type::min();
  for (const SeriesFile& file : listing.series)
    if (const auto time = fs::last_write_time(file.path, ec); !ec) written = std::max(written, time);
  return written;
}

std::string age_text(fs::file_time_type written) {
  return written == fs::file_time_type::min() ? "" : in_units(age_of(written));
}

std::string utc_text(fs::file_time_type written) {
  if (written == fs::file_time_type::min()) return "";
  const std::time_t at =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - age_of(written));
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&at, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string status_text(const std::string& status, const std::string& outcome, fs::file_time_type written) {
  const std::chrono::seconds age = age_of(written);
  if (status == "running" && age > std::chrono::minutes(2))
    return "running, says the manifest, but nothing was written for " + in_units(age);
  return status + (outcome.empty() || outcome == status ? "" : ": " + outcome);
}

}  // namespace nanquest::viewer
