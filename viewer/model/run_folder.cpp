#include "viewer/model/run_folder.h"

#include <algorithm>
#include <cctype>
#include <compare>
#include <system_error>
#include <utility>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "viewer/model/incident.h"
#include "viewer/model/numbers.h"
#include "viewer/model/path_words.h"
#include "viewer/model/run_state.h"
#include "viewer/model/taster.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 2;                       // directories below the folder
constexpr std::size_t kMostDirectories = 5000;  // that are looked into
constexpr std::size_t kLastRows = 4;            // of a series: the last ones may be being written

/// The largest step among the last rows of the first series that can be read.
std::optional<double> last_step_of(const RunListing& listing) {
  for (const SeriesFile& file : listing.series) {
    if (!tasted(Taste::series, file.path)) continue;
    const Result<std::vector<SeriesTable>> end = read_series_end(file.path, kLastRows);
    if (!end) continue;
    for (const SeriesTable& table : *end)
      if (table.name == "scalars" && !table.columns.empty() && table.columns.front() == "step" &&
          table.rows() > 0)
        return table.values[(table.rows() - 1) * table.columns.size()];
  }
  return std::nullopt;
}

RunLine line_of(const RunListing& listing, const std::string& name) {
  RunLine line;
  line.path = listing.run_dir;
  line.name = name;
  line.written = last_written(listing);
  line.state = "unknown";
  std::optional<Manifest> manifest;
  if (!listing.manifest.empty()) {
    Result<Manifest> read = read_manifest(listing.run_dir);
    if (read)
      manifest = std::move(read).value();
    else
      line.outcome = read.error().message;
  }
  if (manifest) {
    line.state = manifest->status;
    line.outcome = manifest->outcome;
    line.command = manifest->command;
  }
  const std::vector<IncidentEntry> incidents = list_incidents(listing, manifest);
  line.incidents = incidents.size();
  if (!incidents.empty())
    line.cause = std::ranges::min_element(incidents, opens_before)->standing();
  else if (manifest && !manifest->findings.empty())
    line.cause = manifest->findings.front().label;
  line.last_step = last_step_of(listing);
  return line;
}

std::vector<fs::path> folders_in(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code ec, ignored;
  for (fs::directory_iterator at(path, ec), end; !ec && at != end; at.increment(ec))
    if (at->is_directory(ignored) && !at->is_symlink(ignored) &&
        !at->path().filename().string().starts_with("."))
      found.push_back(at->path());
  std::ranges::sort(found);
  return found;
}

/// Lists the runs below `path`; `left`: of the directories that may still be looked into.
void collect(const fs::path& path, const fs::path& root, int depth, std::size_t& left,
             std::vector<std::pair<RunListing, std::string>>& out) {
  for (const fs::path& folder : folders_in(path)) {
    if (left == 0) return;
    --left;
    if (Result<RunListing> run = list_run(folder.string()))
      out.emplace_back(std::move(run).value(), folder.lexically_relative(root).string());
    else if (depth > 1)
      collect(folder, root, depth - 1, left, out);
  }
}

/// Before, equal or after: numbers in names by value, so that run-9 comes before run-10.
std::weak_ordering by_name(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto number = [&](const std::string& text, std::size_t& at) {
        while (at + 1 < text.size() && text[at] == '0' && digit(text[at + 1])) ++at;
        const std::size_t from = at;
        while (at < text.size() && digit(text[at])) ++at;
        return text.substr(from, at - from);
      };
      const std::string x = number(a, i), y = number(b, j);
      if (const auto order = std::pair(x.size(), x) <=> std::pair(y.size(), y); order != 0) return order;
      continue;
    }
    if (a[i] != b[j]) return a[i] <=> b[j];
    ++i, ++j;
  }
  return a.size() - i <=> b.size() - j;
}

std::weak_ordering compared(const RunLine& a, const RunLine& b, RunColumn by) {
  switch (by) {
    case RunColumn::name:
      return by_name(a.name, b.name);
    case RunColumn::cause:
      return std::pair(a.cause.empty(), a.cause) <=> std::pair(b.cause.empty(), b.cause);
    case RunColumn::incidents:
      return a.incidents <=> b.incidents;
    case RunColumn::steps: {
      const double x = a.last_step.value_or(-1), y = b.last_step.value_or(-1);
      return x < y   ? std::weak_ordering::less
             : x > y ? std::weak_ordering::greater
                     : std::weak_ordering::equivalent;
    }
    case RunColumn::age:
      return b.written <=> a.written;
    case RunColumn::state:
      return std::pair(a.state, a.outcome) <=> std::pair(b.state, b.outcome);
    case RunColumn::command:
      return a.command <=> b.command;
  }
  return std::weak_ordering::equivalent;
}

}  // namespace

std::string RunFolder::headline() const {
  return counted(runs.size(), "run") + " in " + last_name(path) +
         (whole ? "" : "; there are too many directories, and only the first were looked into");
}

std::vector<std::size_t> RunFolder::rows(const std::string& words, RunColumn by, bool descending) const {
  const Words wanted(words);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const RunLine& r = runs[i];
        wanted.in(r.name + ' ' + r.cause + ' ' + r.state + ' ' + r.outcome + ' ' + r.command))
      out.push_back(i);
  std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) {
    return descending ? compared(runs[b], runs[a], by) < 0 : compared(runs[a], runs[b], by) < 0;
  });
  return out;
}

std::array<std::string, kRunColumns.size()> cells_of(const RunLine& run) {
  const std::string cause = run.cause.empty() ? "no incident" : run.cause;
  return {run.name,
          cause,
          std::to_string(run.incidents),
          run.last_step ? exact_number(*run.last_step) : "-",
          age_text(run.written),
          status_text(run.state, run.outcome, run.written),
          run.command};
}

Result<RunFolder> read_run_folder(const std::string& path, Progress* progress) {
  RunFolder folder{path, {}, true};
  std::size_t left = kMostDirectories;
  std::vector<std::pair<RunListing, std::string>> found;
  collect(path, path, kDepth, left, found);
  folder.whole = left > 0;
  if (found.empty())
    return Error{ErrorCode::bad_file, path + ": holds no run", "give a run directory, or a folder of them"};
  if (progress != nullptr) progress->expect(found.size());
  for (const auto& [listing, name] : found) {
    if (progress != nullptr && progress->stopped()) break;
    folder.runs.push_back(line_of(listing, name));
    if (progress != nullptr) progress->advance(1);
  }
  std::ranges::stable_sort(folder.runs,
                           [](const RunLine& a, const RunLine& b) { return a.written > b.written; });
  return folder;
}

PageTable run_table(const RunFolder& folder) {
  PageTable table;
  for (std::size_t c = 0; c < kRunColumns.size(); ++c) {
    const auto column = static_cast<RunColumn>(c);
    table.columns.push_back({kRunColumns[c], column == RunColumn::incidents || column == RunColumn::steps});
  }
  for (const RunLine& run : folder.runs) {
    const auto cells = cells_of(run);
    table.rows.push_back({{cells.begin(), cells.end()}});
  }
  return table;
}

}  // namespace nanquest::viewer
