#include "trainer/metrics/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace nanquest::trainer {
namespace {

constexpr std::string_view kJsonStart = "{\"step\":";
constexpr std::string_view kCsvStart = "step";

/// The step of a line; nothing for other lines (a header, a damaged line).
std::optional<std::int64_t> step_of(std::string_view line, MetricsLog::Form form) {
  if (form == MetricsLog::Form::jsonl) {
    if (!line.starts_with(kJsonStart)) return std::nullopt;
    line.remove_prefix(kJsonStart.size());
  }
  std::int64_t step = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), step).ec != std::errc{}) return std::nullopt;
  return step;
}

void append_number(std::string& text, double value) {
  char digits[40];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) all.push_back(cell);
  return all;
}

}  // namespace

Result<MetricsLog> MetricsLog::open(const std::string& path, Form form, std::int64_t first,
                                    std::vector<std::string> columns) {
  MetricsLog log(path, form);
  log.columns_ = std::move(columns);
  log.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log.file_ < 0) return log.refused("can't be opened");
  if (Status s = log.cut(first); !s) return s.error();
  if (form == Form::jsonl) return log;
  std::string header;
  if (std::ifstream in(path); std::getline(in, header)) {
    const std::vector<std::string> there = cells(header);
    if (there.empty() || there.front() != kCsvStart)
      return Error{ErrorCode::bad_file, path + ": its first line is no header that begins with \"step\"",
                   "move the file away"};
    log.columns_.assign(there.begin() + 1, there.end());
    return log;
  }
  header = kCsvStart;
  for (const std::string& column : log.columns_) header.append(",").append(column);
  if (Status s = log.append(header + '\n'); !s) return s.error();
  return log;
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : path_(std::move(other.path_)),
      form_(other.form_),
      columns_(std::move(other.columns_)),
      file_(std::exchange(other.file_, -1)),
      cut_lines_(other.cut_lines_) {}

MetricsLog& MetricsLog::operator=(MetricsLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(form_, other.form_);
  std::swap(columns_, other.columns_);
  std::swap(file_, other.file_);
  std::swap(cut_lines_, other.cut_lines_);
  return *this;
}

MetricsLog::~MetricsLog() {
  if (file_ >= 0) ::close(file_);
}

Error MetricsLog::refused(const std::string& what) const {
  return {ErrorCode::io, path_ + ": " + what + ": " + std::strerror(errno),
          "check the disk, or give --metrics-every 0"};
}

Status MetricsLog::cut(std::int64_t first) {
  // A pipe or a device holds no lines of an earlier run, and reading one may never end.
  struct stat file {};
  if (::fstat(file_, &file) != 0 || !S_ISREG(file.st_mode)) return {};
  std::ifstream in(path_, std::ios::binary);
  std::int64_t keep = 0;
  std::string line;
  bool cutting = false;
  while (std::getline(in, line)) {
    const bool whole = !in.eof();
    const std::optional<std::int64_t> step = step_of(line, form_);
    cutting = cutting || !whole || (step && *step >= first);
    if (cutting)
      ++cut_lines_;
    else
      keep += static_cast<std::int64_t>(line.size()) + 1;
  }
  if (cutting && ::ftruncate(file_, keep) != 0) return refused("can't be cut");
  return {};
}

std::string MetricsLog::line(std::int64_t step, const Numbers& numbers) const {
  if (form_ == Form::jsonl) {
    std::string text = std::string(kJsonStart) + std::to_string(step);
    for (const auto& [name, value] : numbers) {
      if (!std::isfinite(value)) continue;
      append_number(text.append(",\"").append(name).append("\":"), value);
    }
    return text + "}\n";
  }
  std::string text = std::to_string(step);
  for (const std::string& column : columns_) {
    text += ',';
    const auto found =
        std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.first == column; });
    if (found != numbers.end() && !std::isnan(found->second)) append_number(text, found->second);
  }
  return text + '\n';
}

Status MetricsLog::append(const std::string& text) {
  const ssize_t written = ::write(file_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return {};
  if (written >= 0) errno = ENOSPC;
  return refused("can't be written");
}

Status MetricsLog::write(std::int64_t step, const Numbers& numbers) {
  return append(line(step, numbers));
}

}  // namespace nanquest::trainer
