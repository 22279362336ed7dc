#include "trainer/data/bin_data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "probe/nanquest.h"

namespace nanquest::trainer {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kHeader = 256 * sizeof(std::int32_t);
constexpr std::int64_t kBlock = 4096, kBlocks = 64;

bool is_bin(const fs::path& path) {
  return path.extension() == ".bin";
}

/// val.bin, tiny_shakespeare_val.bin, fineweb_val_000000.bin
bool held_out_by_name(const fs::path& path) {
  std::string stem("_");
  stem.append(path.stem().string()).append("_");
  return stem.find("_val_") != std::string::npos;
}

std::vector<fs::path> bins_in(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    if (is_bin(at->path()) && at->is_regular_file(ec)) found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool BinData::is(const std::string& path) {
  std::error_code ec;
  return fs::is_directory(path, ec) ? !bins_in(path).empty() : is_bin(path) && fs::exists(path, ec);
}

std::int64_t BinData::File::token(std::int64_t n) const {
  const std::byte* at = mapped.bytes().data() + begin + n * (wide ? 4 : 2);
  std::uint32_t token = 0;
  std::memcpy(&token, at, wide ? 4 : 2);  // a file may be of any length, so tokens of any alignment
  return token;
}

Result<std::unique_ptr<BinData>> BinData::open(const std::string& path, const DataOptions& options) {
  std::unique_ptr<BinData> data(new BinData);
  data->options_ = options;
  std::error_code ec;
  const bool folder = fs::is_directory(path, ec);
  const std::vector<fs::path> found = folder ? bins_in(path) : std::vector<fs::path>{path};
  const bool all_held_out = std::all_of(found.begin(), found.end(), held_out_by_name);
  for (const fs::path& file : found) {
    std::vector<File>& kind = held_out_by_name(file) && !all_held_out ? data->eval_ : data->train_;
    if (Status s = data->add(file.string(), kind); !s) return s.error();
  }
  data->eval_windows_ = data->cut(data->eval_);
  data->split_ = Split(data->cut(data->train_), data->eval_.empty() ? options.eval_every : 0);
  if (data->train_rows() < 1)
    return Error{
        ErrorCode::bad_file,
        path + ": too short to train on: no window of " + std::to_string(options.context + 1) + " tokens",
        "give more tokens or a smaller --context"};
  data->vocabulary_ = options.vocabulary > 0 ? options.vocabulary : data->largest() + 1;
  return data;
}

Status BinData::add(const std::string& path, std::vector<File>& files) {
  const auto bad = [&](const std::string& what, const std::string& hint) {
    return Error{ErrorCode::bad_file, path + ": " + what, hint};
  };
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  File file{.path = path, .mapped = *mapped};
  const std::size_t size = file.mapped.size();
  std::array<std::int32_t, 3> head{};
  if (size >= kHeader) std::memcpy(head.data(), file.mapped.bytes().data(), sizeof head);
  const bool gpt2 = head[0] == 20240520, llama3 = head[0] == 20240801;
  if (head[0] == 20240522)
    return bad("questions of llm.c (HellaSwag and the like), not text", "give its .bin of text");
  if (gpt2 || llama3) {
    if (head[1] != (gpt2 ? 1 : 7))
      return bad("version " + std::to_string(head[1]) + " of llm.c's tokens is not known",
                 "make it with llm.c's data_common.py");
    file.begin = kHeader;
    file.wide = llama3;
    file.tokens = head[2];
    const std::size_t rest = size - kHeader, width = file.wide ? 4 : 2;
    if (head[2] < 0 || rest != static_cast<std::size_t>(head[2]) * width)
      return bad("its header speaks of " + std::to_string(head[2]) + " tokens, it holds " +
                     std::to_string(rest / width),
                 "copy the whole file");
  } else {
    if (size % 2 != 0) return bad("an odd number of bytes can't be tokens of 16 bits", "copy the whole file");
    file.tokens = static_cast<std::int64_t>(size / 2);
  }
  tokens_ += file.tokens;
  files.push_back(std::move(file));
  return {};
}

std::int64_t BinData::cut(std::vector<File>& files) const {
  std::int64_t windows = 0;
  for (File& file : files) {
    file.first_window = windows;
    windows += std::max<std::int64_t>(0, file.tokens - 1) / options_.context;
  }
  return windows;
}

std::int64_t BinData::largest() const {
  std::int64_t most = 0;
  for (const std::vector<File>* files : {&train_, &eval_})
    for (const File& file : *files)
      for (std::int64_t n = 0; n < file.tokens; ++n) most = std::max(most, file.token(n));
  return most;
}

TokenRows BinData::gather(const std::vector<File>& files, const std::vector<std::int64_t>& windows) const {
  const std::int64_t rows = static_cast<std::int64_t>(windows.size()), context = options_.context;
  TokenRows batch{at::empty({rows, context}, at::kLong), at::empty({rows, context}, at::kLong)};
  auto* tokens = batch.tokens.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t window : windows) {
    // The last file that begins at this window or before: one that is shorter than a window begins where the
    // next one does.
    const auto behind = std::upper_bound(files.begin(), files.end(), window,
                                         [](std::int64_t w, const File& f) { return w < f.first_window; });
    const File& file = *std::prev(behind);
    const std::int64_t first = (window - file.first_window) * context;
    for (std::int64_t i = 0; i < context; ++i) {
      *tokens++ = file.token(first + i);
      *targets++ = file.token(first + i + 1);
    }
    batch.ids.push_back(file.path + "@" + std::to_string(first));
  }
  return batch;
}

std::int64_t BinData::eval_rows() const {
  return eval_.empty() ? split_.held_out() : eval_windows_;
}

TokenRows BinData::train_batch(std::int64_t position, std::int64_t size) const {
  return gather(train_, train_rows_at(split_, position, size, options_.seed));
}

TokenRows BinData::eval_batch(std::int64_t first, std::int64_t size) const {
  if (eval_.empty()) return gather(train_, held_out_rows_at(split_, first, size));
  std::vector<std::int64_t> windows;
  for (std::int64_t i = first; i < std::min(first + size, eval_windows_); ++i) windows.push_back(i);
  return gather(eval_, windows);
}

std::string BinData::description() const {
  return std::to_string(train_.size() + eval_.size()) + " files, " + std::to_string(tokens_) +
         " tokens below " + std::to_string(vocabulary_) + ", " + std::to_string(train_rows()) +
         " windows to train on, " + std::to_string(eval_rows()) + " held out" +
         (eval_.empty() ? "" : " in files of their own");
}

std::string BinData::fingerprint() const {
  std::string looked_at;
  for (const std::vector<File>* files : {&train_, &eval_}) {
    looked_at += '|';
    for (const File& file : *files) {
      const auto size = static_cast<std::int64_t>(file.mapped.size());
      looked_at += file.path + '\0' + std::to_string(size) + '\0';
      const std::int64_t step = std::max(kBlock, size / kBlocks);
      const auto add = [&](std::int64_t at) {
        const std::int64_t length = std::min(kBlock, size - at);
        looked_at.append(reinterpret_cast<const char*>(file.mapped.bytes().data()) + at,
                         static_cast<std::size_t>(length));
      };
      for (std::int64_t at = 0; at < size; at += step) add(at);
      add(std::max<std::int64_t>(0, size - kBlock));
    }
  }
  char text[80];
  std::snprintf(text, sizeof text, "holdout=%lld tokens=%016llx", static_cast<long long>(options_.eval_every),
                static_cast<unsigned long long>(hash_contents(looked_at.data(), looked_at.size())));
  return text;
}

}  // namespace nanquest::trainer
