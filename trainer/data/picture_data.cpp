#include "trainer/data/picture_data.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>

#include "probe/nanquest.h"
#include "trainer/data/crc32.h"
#include "trainer/data/manifest.h"
#include "trainer/data/prepared_data.h"
#include "trainer/data/utf8.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

constexpr const char* kPrepareAgain = "prepare the pictures again, or copy the whole folder";

Error no_pictures(const std::string& path) {
  return {std::filesystem::exists(path) ? ErrorCode::usage : ErrorCode::bad_file,
          path + ": no pictures of nanquest prepare",
          "nanquest prepare --model FOLDER --data FILE.jsonl --out DIR makes some"};
}

}  // namespace

struct PictureData::Reader {
  struct Shard {
    std::string name, source;
    std::uint64_t bytes = 0, samples = 0;
    std::uint32_t crc32 = 0;
  };
  std::vector<Shard> shards;
  std::map<std::string, TokenizerFile> tokenizer;
  std::vector<std::int64_t> question, shape;
  std::int64_t yes = 0, no = 0;

  explicit Reader(const json& all) {
    if (const auto version = manifest_field<std::uint32_t>(all, "version"); version != kPreparedVersion)
      throw BadManifest{"of version " + std::to_string(version) + ", this program reads " +
                        std::to_string(kPreparedVersion)};
    tokenizer = tokenizer_files(manifest_field<json>(all, "tokenizer"));
    question = numbers(manifest_field<json>(all, "prompt"), "tokens");
    shape = numbers(all, "pixels");
    if (shape.size() != 3) throw BadManifest{"\"pixels\" is not channels, height and width"};
    const auto answers = manifest_field<json>(all, "answers");
    yes = manifest_field<std::int64_t>(manifest_field<json>(answers, "yes"), "token");
    no = manifest_field<std::int64_t>(manifest_field<json>(answers, "no"), "token");
    if (yes == no) throw BadManifest{"both answers are the same token"};
    std::vector<std::string> sources;
    for (const json& file : manifest_field<json>(all, "files"))
      sources.push_back(manifest_field<std::string>(file, "path"));
    for (const json& shard : manifest_field<json>(all, "shards")) {
      const auto source = manifest_field<std::uint64_t>(shard, "file");
      if (source >= sources.size()) throw BadManifest{"a shard is of a file that is not listed"};
      shards.push_back({manifest_field<std::string>(shard, "name"), sources[source],
                        manifest_field<std::uint64_t>(shard, "bytes"),
                        manifest_field<std::uint64_t>(shard, "samples"),
                        manifest_field<std::uint32_t>(shard, "crc32")});
    }
    if (shards.empty()) throw BadManifest{"no shards"};
  }

  static std::vector<std::int64_t> numbers(const json& object, const char* key) {
    std::vector<std::int64_t> found;
    for (const json& one : manifest_field<json>(object, key)) {
      if (!one.is_number_unsigned() || one.get<std::uint64_t>() > (std::uint64_t{1} << 40))
        throw BadManifest{std::string("\"") + key + "\" holds what is no whole number, or too large a one"};
      found.push_back(one.get<std::int64_t>());
    }
    if (found.empty()) throw BadManifest{std::string("\"") + key + "\" is empty"};
    return found;
  }
};

Result<std::unique_ptr<PictureData>> PictureData::open(const std::string& folder,
                                                       const DataOptions& options) {
  const std::string path = folder + "/" + kManifest;
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, kPrepareAgain};
  };
  if (!PreparedData::is(folder)) return no_pictures(folder);
  const Result<std::string> text = read_whole_file(path);
  if (!text)
    return Error{text.error().code, text.error().message,
                 "let nanquest prepare finish: the same command goes on"};
  std::unique_ptr<PictureData> data(new PictureData);
  try {
    const json all = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (all.is_discarded()) return bad("not JSON");
    if (!is_pictures(all))
      return Error{ErrorCode::usage, folder + ": text, no pictures with labels",
                   "nanquest-trainer finetune learns from it"};
    const Reader manifest(all);
    if (Status s = data->open_shards(folder, manifest); !s) return s.error();
    data->tokenizer_ = manifest.tokenizer;
    data->question_ = manifest.question;
    data->yes_ = manifest.yes;
    data->no_ = manifest.no;
    data->shape_ = manifest.shape;
  } catch (const BadManifest& e) {
    return bad(e.what);
  } catch (const std::exception& e) {  // nlohmann's own
    return bad(e.what());
  }
  data->folder_ = folder;
  data->seed_ = options.seed;
  data->split_ = Split(data->rows_, options.eval_every);
  if (data->train_rows() < 1)
    return Error{ErrorCode::usage, folder + ": no picture is left to train on",
                 "give more data, or --holdout-every 0"};
  data->fingerprint_ += " holdout=" + std::to_string(options.eval_every);
  return data;
}

Status PictureData::open_shards(const std::string& folder, const Reader& manifest) {
  std::string about;
  const auto add = [&about](std::int64_t number) { about += std::to_string(number) + '\0'; };
  for (const std::int64_t token : manifest.question) add(token);
  add(manifest.yes);
  add(manifest.no);
  for (const Reader::Shard& wanted : manifest.shards) {
    check_shard_name(wanted.name);
    const std::string path = folder + "/" + wanted.name;
    Result<PictureFile> opened = PictureFile::open(path);
    if (!opened) return opened.error();
    const PictureFile& file = *opened;
    const auto wrong = [&](const std::string& what) {
      return Error{ErrorCode::bad_file, path + ": " + what, kPrepareAgain};
    };
    const std::vector<std::int64_t> shape{file.channels(), file.height(), file.width()};
    if (file.bytes().size() != wanted.bytes || file.samples() != wanted.samples || shape != manifest.shape)
      return wrong("not the shard that the manifest describes");
    if (crc32(file.bytes()) != wanted.crc32)
      return wrong("its checksum does not match: the file was damaged");
    about += wanted.name + '\0' + std::to_string(wanted.bytes) + '\0' + std::to_string(wanted.crc32) + '\0';
    for (std::uint64_t i = 0; i < file.samples(); ++i) answered_yes_ += file.label(i);
    shards_.push_back({file, wanted.source, rows_});
    rows_ += static_cast<std::int64_t>(file.samples());
  }
  char text[60];
  std::snprintf(text, sizeof text, "pictures=%lld shards=%016llx", static_cast<long long>(rows_),
                static_cast<unsigned long long>(hash_contents(about.data(), about.size())));
  fingerprint_ = text;
  return {};
}

PictureRows PictureData::train_batch(std::int64_t position, std::int64_t size) const {
  return gather(train_rows_at(split_, position, size, seed_));
}

PictureRows PictureData::eval_batch(std::int64_t first, std::int64_t size) const {
  return gather(held_out_rows_at(split_, first, size));
}

PictureRows PictureData::batch(std::int64_t first, std::int64_t size) const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(size, rows_ - first)));
  std::iota(rows.begin(), rows.end(), first);
  return gather(rows);
}

PictureRows PictureData::gather(const std::vector<std::int64_t>& rows) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  PictureRows batch{.pixels = at::empty({count, shape_[0], shape_[1], shape_[2]}, at::kFloat),
                    .labels = at::empty({count}, at::kLong),
                    .ids = {},
                    .texts = {}};
  auto* pixels = batch.pixels.mutable_data_ptr<float>();
  auto* labels = batch.labels.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t row : rows) {
    const auto behind = std::upper_bound(shards_.begin(), shards_.end(), row,
                                         [](std::int64_t r, const Shard& s) { return r < s.first_row; });
    const Shard& shard = *std::prev(behind);
    const auto at = static_cast<std::uint64_t>(row - shard.first_row);
    shard.file.read(at, pixels);
    pixels += shard.file.values();
    *labels++ = shard.file.label(at);
    batch.ids.push_back(shard.source + ":" + std::to_string(shard.file.line(at)));
    const std::string name = shard.file.picture(at);
    batch.texts.push_back(
        as_text(std::span(reinterpret_cast<const std::uint8_t*>(name.data()), name.size())));
  }
  return batch;
}

Status PictureData::made_for(const std::string& folder) const {
  return made_by_tokenizer_of(folder, folder_, tokenizer_);
}

std::string PictureData::description() const {
  return contents() + "; " + std::to_string(train_rows()) + " to train on, " + std::to_string(eval_rows()) +
         " held out";
}

std::string PictureData::contents() const {
  return std::to_string(rows_) + " pictures of " + std::to_string(shape_[1]) + " x " +
         std::to_string(shape_[2]) + " pixels, " + std::to_string(answered_yes_) +
         " of them to be answered with Yes";
}

}  // namespace nanquest::trainer
