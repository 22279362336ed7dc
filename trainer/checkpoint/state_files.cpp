#include "trainer/checkpoint/state_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace nanquest::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "state-", kEnd = ".safetensors";
/// The only file of runs before there were several; used for an error message.
constexpr std::string_view kOld = "state.safetensors";

/// The number in the name of a state's file, -1 for other names.
std::int64_t number_of(const std::string& name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return -1;
  const std::string digits = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::stoll(digits);
}

/// Names in `folder`; none if it can't be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    names.push_back(at->path().filename().string());
  return names;
}

}  // namespace

std::vector<std::string> state_files(const std::string& folder) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : names_in(folder))
    if (const std::int64_t number = number_of(name); number >= 0) found.emplace_back(number, name);
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths(found.size(), folder + "/");
  for (std::size_t i = 0; i < found.size(); ++i) paths[i] += found[i].second;
  return paths;
}

Result<std::string> write_state_file(const std::string& folder, const TrainState& state, std::int64_t keep) {
  char name[40];
  std::snprintf(name, sizeof name, "state-%08lld.safetensors",
                static_cast<long long>(state.counters.data_steps));
  const std::string path = folder + "/" + name;
  if (Status s = save_state(path, state); !s) return s.error();
  // Only now, because the older ones are needed until it is complete.
  const std::vector<std::string> all = state_files(folder);
  for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(1, keep)); i < all.size(); ++i) {
    std::error_code ec;
    if (all[i] != path) fs::remove(all[i], ec);
  }
  return path;
}

Result<FoundState> newest_state(const std::string& folder) {
  std::vector<std::string> files = state_files(folder);
  std::error_code ec;
  if (const std::string old = folder + "/" + std::string(kOld); fs::exists(old, ec)) files.push_back(old);
  if (files.empty())
    return Error{ErrorCode::bad_file, folder + ": no checkpoint to resume from",
                 "start without --resume, or give the run directory that has one"};
  FoundState found;
  Error newest;
  for (const std::string& path : files) {
    Result<TrainState> state = load_state(path);
    if (state) {
      found.state = std::move(state).value();
      found.path = path;
      for (std::string& remark : found.remarks) remark += "; going on from the one before, " + found.path;
      return found;
    }
    if (found.damaged.empty()) newest = state.error();
    found.damaged.push_back(path);
    found.remarks.push_back(state.error().message);
  }
  if (files.size() > 1) newest.message += ", and so are the checkpoints before it";
  return newest;
}

void set_aside(const std::string& path) {
  std::error_code ec;
  fs::rename(path, path + ".damaged", ec);
}

void remove_half_written(const std::string& folder) {
  const std::string half_written = std::string(kEnd) + ".tmp-";
  for (const std::string& name : names_in(folder)) {
    std::error_code ec;
    if (name.find(half_written) != std::string::npos) fs::remove(fs::path(folder) / name, ec);
  }
}

}  // namespace nanquest::trainer
