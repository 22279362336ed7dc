#include "probe/step/file_budget.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

std::string in_words(std::uint64_t bytes) {
  const int shift = bytes < (10u << 20) ? 10 : 20;
  return std::to_string((bytes + (1u << shift) - 1) >> shift) + (shift == 10 ? " kB" : " MB");
}

}  // namespace

std::uint64_t FileBudget::bytes_of(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const std::string& each : {path, replay_path(path)}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(each, error);
    if (!error) bytes += size;
  }
  return bytes;
}

std::uint64_t FileBudget::used() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += bytes_of(file.path);
  return bytes;
}

Result<std::vector<std::string>> FileBudget::to_go(std::uint64_t bytes) const {
  std::vector<std::string> go;
  if (!bounded()) return go;
  std::uint64_t taken = used() + bytes;
  const auto first =
      std::find_if(files_.begin(), files_.end(), [](const File& f) { return f.kind == Kind::incident; });
  for (const bool wake : {true, false})
    for (auto file = files_.begin(); file != files_.end() && taken > most_; ++file) {
      if (file == first || (file->kind == Kind::wake) != wake) continue;
      taken -= bytes_of(file->path);
      go.push_back(file->path);
    }
  if (taken <= most_) return go;
  return Error{
      ErrorCode::io,
      "it takes about " + in_words(bytes) + " of the " + in_words(most_) + " that max_disk allows" +
          (first == files_.end() ? ""
                                 : ", of which the first incident keeps " + in_words(bytes_of(first->path))),
      "give a larger --max-disk"};
}

void FileBudget::wrote(const std::string& path, Kind kind) {
  files_.push_back({path, kind});
}

std::uint64_t FileBudget::remove(const std::string& path) {
  const std::uint64_t bytes = bytes_of(path);
  for (const std::string& each : {path, replay_path(path)}) {
    std::error_code gone_already;
    std::filesystem::remove(each, gone_already);
  }
  std::erase_if(files_, [&](const File& file) { return file.path == path; });
  return bytes;
}

}  // namespace nanquest
