#include "trainer/data/prepared_data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "probe/nanquest.h"
#include "trainer/data/crc32.h"
#include "trainer/data/manifest.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

constexpr const char* kAgain = "prepare the data again, or copy the whole folder";

}  // namespace

struct PreparedData::Reader {
  struct Shard {
    std::string name, source;
    std::uint64_t bytes = 0, tokens = 0, samples = 0, rows = 0;
    std::uint32_t crc32 = 0;
  };
  std::vector<Shard> shards;
  std::map<std::string, TokenizerFile> tokenizer;
  std::int64_t longest = 0, largest = 0, vocabulary = 0, padding = 0, groups = 0;
  bool packing = false;

  explicit Reader(const json& all) {
    if (!all.is_object()) throw BadManifest{"not a JSON object"};
    if (manifest_field<std::string>(all, "format") != "nanquest.prepared")
      throw BadManifest{"not a manifest of prepared data"};
    if (const auto version = manifest_field<std::uint32_t>(all, "version"); version != kPreparedVersion)
      throw BadManifest{"of version " + std::to_string(version) + ", this program reads " +
                        std::to_string(kPreparedVersion)};
    const json settings = manifest_field<json>(all, "settings"),
               maker = manifest_field<json>(all, "tokenizer");
    packing = manifest_field<bool>(settings, "packing");
    groups = manifest_field<std::int64_t>(settings, "length_groups");
    longest = manifest_field<std::int64_t>(all, "longest");
    largest = manifest_field<std::int64_t>(all, "largest");
    vocabulary = std::max(manifest_field<std::int64_t>(maker, "size"), largest + 1);
    for (const char* key : {"eos", "pad"})  // the last that there is
      if (maker.contains(key) && maker[key].is_number_unsigned())
        padding = manifest_field<std::int64_t>(maker, key);
    if (padding >= vocabulary) padding = 0;
    tokenizer = tokenizer_files(maker);
    std::vector<std::string> sources;
    for (const json& file : manifest_field<json>(all, "files"))
      sources.push_back(manifest_field<std::string>(file, "path"));
    for (const json& shard : manifest_field<json>(all, "shards")) {
      const auto source = manifest_field<std::uint64_t>(shard, "file");
      if (source >= sources.size()) throw BadManifest{"a shard is of a file that is not listed"};
      shards.push_back(
          {manifest_field<std::string>(shard, "name"), sources[source],
           manifest_field<std::uint64_t>(shard, "bytes"), manifest_field<std::uint64_t>(shard, "tokens"),
           manifest_field<std::uint64_t>(shard, "samples"), manifest_field<std::uint64_t>(shard, "rows"),
           manifest_field<std::uint32_t>(shard, "crc32")});
    }
    if (shards.empty()) throw BadManifest{"no shards"};
  }
};

bool PreparedData::is(const std::string& folder) {
  // A run has a manifest of that name too.
  std::error_code ec;
  for (std::filesystem::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("shard-") && at->path().extension() == ".bin") return true;
  }
  const Result<std::string> text = read_whole_file(folder + "/" + kManifest);
  return text && text->find("\"nanquest.prepared\"") != std::string::npos;
}

Result<std::unique_ptr<PreparedData>> PreparedData::open(const std::string& folder,
                                                         const DataOptions& options) {
  const std::string path = folder + "/" + kManifest;
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, kAgain};
  };
  const Result<std::string> text = read_whole_file(path);
  if (!text)
    return Error{text.error().code, text.error().message,
                 "let nanquest prepare finish: the same command goes on"};
  std::unique_ptr<PreparedData> data(new PreparedData);
  try {
    const json all = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (all.is_discarded()) return bad("not JSON");
    if (is_pictures(all))
      return Error{ErrorCode::usage, folder + ": pictures with labels, no text to go on with",
                   "nanquest-trainer yesno learns from them"};
    const Reader manifest(all);
    if (Status s = data->open_shards(folder, manifest); !s) return s.error();
    data->tokenizer_ = manifest.tokenizer;
    data->vocabulary_ = manifest.vocabulary;
    data->padding_ = manifest.padding;
    data->group_ = manifest.groups;
    data->packed_ = manifest.packing;
  } catch (const BadManifest& e) {
    return bad(e.what);
  } catch (const std::exception& e) {  // nlohmann's own
    return bad(e.what());
  }
  data->folder_ = folder;
  data->seed_ = options.seed;
  data->split_ = Split(data->rows_, options.eval_every);
  if (data->train_rows() < 1)
    return Error{ErrorCode::usage, folder + ": no row is left to train on",
                 "give more data, or --holdout-every 0"};
  if (data->group_ > 1) data->sort_by_length();
  data->fingerprint_ +=
      " groups=" + std::to_string(data->group_) + " holdout=" + std::to_string(options.eval_every);
  return data;
}

Status PreparedData::open_shards(const std::string& folder, const Reader& manifest) {
  std::string about;
  for (const Reader::Shard& wanted : manifest.shards) {
    check_shard_name(wanted.name);
    const std::string path = folder + "/" + wanted.name;
    Result<PreparedFile> opened = PreparedFile::open(path);
    if (!opened) return opened.error();
    const PreparedFile& file = *opened;
    const auto wrong = [&](const std::string& what) {
      return Error{ErrorCode::bad_file, std::string(path).append(": ").append(what), kAgain};
    };
    if (file.bytes().size() != wanted.bytes || file.tokens() != wanted.tokens ||
        file.samples() != wanted.samples || file.rows() != wanted.rows)
      return wrong("not the shard that the manifest describes");
    if (crc32(file.bytes()) != wanted.crc32)
      return wrong("its checksum does not match: the file was damaged");
    about += wanted.name + '\0' + std::to_string(wanted.bytes) + '\0' + std::to_string(wanted.crc32) + '\0';
    for (std::uint64_t row = 0; row < file.rows(); ++row)
      longest_ = std::max(longest_, static_cast<std::int64_t>(file.row_tokens(row)));
    tokens_ += static_cast<std::int64_t>(file.tokens());
    samples_ += static_cast<std::int64_t>(file.samples());
    shards_.push_back({file, wanted.source, rows_});
    rows_ += static_cast<std::int64_t>(file.rows());
  }
  char text[60];
  std::snprintf(text, sizeof text, "rows=%lld shards=%016llx", static_cast<long long>(rows_),
                static_cast<unsigned long long>(hash_contents(about.data(), about.size())));
  fingerprint_ = text;
  return {};
}

void PreparedData::sort_by_length() {
  std::vector<std::uint64_t> lengths;
  for (const Shard& shard : shards_)
    for (std::uint64_t row = 0; row < shard.file.rows(); ++row) lengths.push_back(shard.file.row_tokens(row));
  for (std::int64_t i = 0; i < train_rows(); ++i) by_length_.push_back(split_.train_row(i));
  std::stable_sort(by_length_.begin(), by_length_.end(), [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  });
}

TokenRows PreparedData::train_batch(std::int64_t position, std::int64_t size) const {
  if (by_length_.empty()) return gather(train_rows_at(split_, position, size, seed_));
  const auto count = by_length_.size(), group = static_cast<std::size_t>(group_);
  std::vector<std::int64_t> rows;
  for (auto at = static_cast<std::uint64_t>(position); rows.size() < static_cast<std::size_t>(size); ++at)
    rows.push_back(by_length_[shuffled_in_groups(at % count, count, group, seed_, at / count)]);
  return gather(rows);
}

TokenRows PreparedData::eval_batch(std::int64_t first, std::int64_t size) const {
  return gather(held_out_rows_at(split_, first, size));
}

std::pair<const PreparedData::Shard*, std::uint64_t> PreparedData::find(std::int64_t row) const {
  const auto behind = std::upper_bound(shards_.begin(), shards_.end(), row,
                                       [](std::int64_t r, const Shard& s) { return r < s.first_row; });
  const Shard& shard = *std::prev(behind);
  return {&shard, static_cast<std::uint64_t>(row - shard.first_row)};
}

TokenRows PreparedData::gather(const std::vector<std::int64_t>& rows) const {
  std::int64_t time = 0;
  for (const std::int64_t row : rows) {
    const auto [shard, at] = find(row);
    time = std::max(time, static_cast<std::int64_t>(shard->file.row_tokens(at)) - 1);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  TokenRows batch{at::full({count, time}, padding_, at::kLong), at::full({count, time}, kLeftOut, at::kLong)};
  if (packed_) {
    batch.positions = at::zeros({count, time}, at::kLong);
    batch.parts = at::zeros({count, time}, at::kLong);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [shard, row] = find(rows[static_cast<std::size_t>(i)]);
    const PreparedFile& file = shard->file;
    const auto begin = [time](const at::Tensor& t, std::int64_t r) {
      return t.defined() ? t.mutable_data_ptr<std::int64_t>() + r * time : nullptr;
    };
    std::int64_t *token = begin(batch.tokens, i), *target = begin(batch.targets, i),
                 *position = begin(batch.positions, i), *part = begin(batch.parts, i);
    std::string id = shard->source + ":";
    const std::uint64_t first = file.row_begin(row), last = file.row_begin(row + 1);
    const std::uint64_t end = file.sample_begin(last);
    std::int64_t at = 0;
    for (std::uint64_t sample = first; sample < last; ++sample) {
      id.append(sample > first ? "+" : "").append(std::to_string(file.line(sample)));
      const std::uint64_t from = file.sample_begin(sample), to = file.sample_begin(sample + 1);
      // The row's last token is only a target; the last token before another text has no target, since the
      // next text's first token does not follow from it.
      for (std::uint64_t n = from; n < to && n + 1 < end; ++n, ++at) {
        token[at] = file.token(n);
        if (n + 1 < to && file.learned(n + 1)) target[at] = file.token(n + 1);
        if (!packed_) continue;
        position[at] = static_cast<std::int64_t>(n - from);
        part[at] = static_cast<std::int64_t>(sample - first);
      }
    }
    // Padding is a text of its own, with no target.
    for (std::int64_t n = 0; packed_ && at < time; ++at, ++n) {
      position[at] = n;
      part[at] = static_cast<std::int64_t>(last - first);
    }
    batch.ids.push_back(std::move(id));
  }
  return batch;
}

Status PreparedData::made_for(const std::string& folder) const {
  return made_by_tokenizer_of(folder, folder_, tokenizer_);
}

std::string PreparedData::description() const {
  return std::to_string(samples_) + " samples in " + std::to_string(rows_) + " rows, " +
         std::to_string(tokens_) + " tokens, the longest row " + std::to_string(longest_) + "; " +
         std::to_string(train_rows()) + " rows to train on, " + std::to_string(eval_rows()) + " held out";
}

}  // namespace nanquest::trainer
