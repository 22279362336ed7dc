#include "trainer/data/text_data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "probe/nanquest.h"
#include "trainer/data/utf8.h"

namespace nanquest::trainer {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 31;  // Window::offset is 32 bits wide

Error bad(const std::string& path, const std::string& what, const std::string& hint) {
  return Error{ErrorCode::bad_file, path + ": " + what, hint};
}

/// File name endings of text; other files inside a folder are skipped.
bool looks_like_text(const fs::path& path) {
  static constexpr std::array<std::string_view, 44> endings = {
      ".txt",  ".md",  ".rst",  ".tex",  ".log",   ".csv", ".tsv", ".json", ".jsonl", ".xml", ".html",
      ".htm",  ".yml", ".yaml", ".toml", ".cfg",   ".ini", ".c",   ".h",    ".cc",    ".cpp", ".cxx",
      ".hpp",  ".hh",  ".cu",   ".cuh",  ".cmake", ".py",  ".sh",  ".js",   ".ts",    ".go",  ".rs",
      ".java", ".rb",  ".pl",   ".lua",  ".sql",   ".css", ".tcc", ".inl",  ".in",    ".m",   ".org"};
  const std::string ending = path.extension().string();
  const std::string name = path.filename().string();
  return std::find(endings.begin(), endings.end(), ending) != endings.end() || name == "README" ||
         name == "LICENSE" || name == "Makefile";
}

bool holds_weights(const fs::path& folder) {
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    if (at->path().extension() == ".safetensors") return true;
  return false;
}

/// Folders without written text: hidden ones, build trees, and the runs of this program.
bool generated(const fs::path& folder) {
  std::error_code ec;
  return folder.filename().string().starts_with('.') || fs::exists(folder / "CMakeCache.txt", ec) ||
         fs::exists(folder / "series.r0.h5", ec) || holds_weights(folder / "checkpoints");
}

}  // namespace

Result<TextData> TextData::open(const std::string& path, const DataOptions& options) {
  TextData data;
  data.options_ = options;
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (path.empty() || !fs::exists(status))
    return bad(path.empty() ? "data" : path, "no such file or folder",
               "give --data a text file or a folder of them");
  const bool folder = fs::is_directory(status);
  if (Status s = folder ? data.add_folder(path) : data.add_file(path, true); !s) return s.error();
  data.cut();
  if (data.train_rows() < 1) {
    const std::string need = std::to_string(options.context + 1) + " bytes";
    if (data.files_.empty() && folder)
      return bad(
          path,
          "no text files in this folder" +
              (data.skipped_binary_ ? " (" + std::to_string(data.skipped_binary_) + " binary ones skipped)"
                                    : ""),
          "text files end in .txt, .md, .cpp, .py and the like");
    return bad(path, "too short to train on: no window of " + need, "give more text or a smaller --context");
  }
  return data;
}

Status TextData::add_folder(const std::string& path) {
  std::vector<fs::path> found;
  std::error_code ec;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, ec), end;
  if (ec) return bad(path, "can't be listed: " + ec.message(), "check its permissions");
  for (; it != end; it.increment(ec)) {
    if (ec) return bad(path, "can't be listed: " + ec.message(), "check its permissions");
    if (it->is_directory(ec) && generated(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(ec)) {
      looks_like_text(it->path()) ? found.push_back(it->path()) : void(++skipped_other_);
    }
  }
  std::sort(found.begin(), found.end());
  std::uintmax_t bytes = 0;
  for (const fs::path& file : found)
    if (const std::uintmax_t size = fs::file_size(file, ec); !ec && size < kLargestFile) bytes += size;
  bytes_.reserve(bytes);  // growing would hold it twice for a while
  for (const fs::path& file : found)
    if (Status s = add_file(file.string(), false); !s) return s;
  return {};
}

Status TextData::add_file(const std::string& path, bool named) {
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(path, ec);
  std::ifstream in(path, std::ios::binary);
  if (ec || !in || size >= kLargestFile) {
    if (!named) return ++skipped_other_, Status{};
    return bad(path,
               ec   ? ec.message()
               : in ? "larger than 2 GiB"
                    : "can't be opened",
               in ? "split it" : "check that it is a readable file");
  }
  if (size == 0) {
    if (!named) return ++skipped_short_, Status{};
    return bad(path, "the file is empty", "give a text file");
  }
  // Read to its final place: the corpus is in memory only once.
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + size);
  const std::span<const std::uint8_t> content = std::span(bytes_).subspan(begin);
  if (!in.read(reinterpret_cast<char*>(bytes_.data() + begin), static_cast<std::streamsize>(size))) {
    bytes_.resize(begin);
    if (!named) return ++skipped_other_, Status{};
    return bad(path, "could not be read to its end", "check the disk");
  }
  if (const std::size_t odd = first_non_text(content); odd != size) {
    const std::uint8_t byte = content[odd];
    bytes_.resize(begin);
    if (!named) return ++skipped_binary_, Status{};
    return bad(path, "not UTF-8 text: byte " + std::to_string(byte) + " at offset " + std::to_string(odd),
               "convert it, for example with iconv -t UTF-8");
  }
  files_.push_back({path, begin, size});
  return {};
}

void TextData::cut() {
  const auto context = static_cast<std::size_t>(options_.context);
  for (std::size_t f = 0; f < files_.size(); ++f) {
    if (files_[f].size < context + 1) ++skipped_short_;
    for (std::size_t at = 0; at + context + 1 <= files_[f].size; at += context)
      windows_.push_back({static_cast<std::uint32_t>(f), static_cast<std::uint32_t>(at)});
  }
  split_ = Split(static_cast<std::int64_t>(windows_.size()), options_.eval_every);
}

TokenRows TextData::gather(const std::vector<Window>& windows) const {
  const std::int64_t rows = static_cast<std::int64_t>(windows.size()), context = options_.context;
  TokenRows batch{at::empty({rows, context}, at::kLong), at::empty({rows, context}, at::kLong)};
  auto* tokens = batch.tokens.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const Window& w : windows) {
    const File& file = files_[w.file];
    const std::uint8_t* bytes = bytes_.data() + file.begin + w.offset;
    tokens = std::copy(bytes, bytes + context, tokens);
    targets = std::copy(bytes + 1, bytes + 1 + context, targets);
    batch.ids.push_back(file.path + "@" + std::to_string(w.offset));
    batch.texts.push_back(as_text({bytes, static_cast<std::size_t>(context) + 1}));
  }
  return batch;
}

TokenRows TextData::train_batch(std::int64_t position, std::int64_t size) const {
  std::vector<Window> windows;
  for (const std::int64_t row : train_rows_at(split_, position, size, options_.seed))
    windows.push_back(windows_[static_cast<std::size_t>(row)]);
  return gather(windows);
}

TokenRows TextData::eval_batch(std::int64_t first, std::int64_t size) const {
  std::vector<Window> windows;
  for (const std::int64_t row : held_out_rows_at(split_, first, size))
    windows.push_back(windows_[static_cast<std::size_t>(row)]);
  return gather(windows);
}

std::string TextData::description() const {
  const auto counted = [](std::int64_t n, const char* what) {
    return n > 0 ? ", " + std::to_string(n) + " " + what : "";
  };
  return std::to_string(files()) + " files, " + std::to_string(bytes()) + " bytes, " +
         std::to_string(train_rows()) + " windows to train on, " + std::to_string(eval_rows()) + " held out" +
         counted(skipped_binary_, "binary files skipped") + counted(skipped_short_, "files too short") +
         counted(skipped_other_, "other files passed over");
}

std::string TextData::fingerprint() const {
  const auto hash = [](const void* data, std::size_t size) {
    HashState state;
    const std::size_t whole = size / kHashBlock;
    state.add_blocks(data, whole);
    return state.finish(static_cast<const char*>(data) + whole * kHashBlock, size % kHashBlock);
  };
  std::string names;
  for (const File& f : files_) names += f.path + '\0' + std::to_string(f.size) + '\0';
  char text[120];
  std::snprintf(text, sizeof text, "holdout=%lld files=%016llx bytes=%016llx",
                static_cast<long long>(options_.eval_every),
                static_cast<unsigned long long>(hash(names.data(), names.size())),
                static_cast<unsigned long long>(hash(bytes_.data(), bytes_.size())));
  return text;
}

}  // namespace nanquest::trainer
