/// Data that nanquest prepare made: a folder of shards with a manifest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/data/order.h"
#include "trainer/data/prepared_file.h"
#include "trainer/data/token_data.h"
#include "trainer/data/tokenizer_file.h"

namespace nanquest::trainer {

/// Rows of one or several texts each. A row's id is "file:line", for several texts "file:3+7+9".
class PreparedData final : public TokenData {
 public:
  /// Reads `folder`/manifest.json, maps its shards and checks them against it: sizes, checksums, order. Of
  /// the options only the seed and `eval_every` are used. `bad_file` names what is wrong; `usage` if nothing
  /// is left to train on.
  static Result<std::unique_ptr<PreparedData>> open(const std::string& folder, const DataOptions& options);

  /// Whether `folder` holds a manifest of prepared data, or shards without one.
  static bool is(const std::string& folder);

  std::int64_t train_rows() const override { return split_.to_train(); }
  std::int64_t eval_rows() const override { return split_.held_out(); }
  TokenRows train_batch(std::int64_t position, std::int64_t size) const override;
  TokenRows eval_batch(std::int64_t first, std::int64_t size) const override;
  std::int64_t longest() const override { return longest_ - 1; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t padding() const override { return padding_; }
  bool packed() const override { return packed_; }
  std::string description() const override;
  std::string fingerprint() const override { return fingerprint_; }

  /// Whether the tokenizer of the model in `folder` is the one that made the tokens, as far as both have
  /// files of it; `usage` names the file that differs.
  Status made_for(const std::string& folder) const;
  /// Files of the tokenizer that made the tokens, by name.
  const std::map<std::string, TokenizerFile>& tokenizer() const { return tokenizer_; }

 private:
  struct Shard {
    PreparedFile file;
    std::string source;          ///< the file that its lines are of
    std::int64_t first_row = 0;  ///< of all rows
  };

  struct Reader;  ///< of the manifest

  Status open_shards(const std::string& folder, const Reader& manifest);
  void sort_by_length();
  /// The shard that holds row `row` of all, and the row's number in it.
  std::pair<const Shard*, std::uint64_t> find(std::int64_t row) const;
  TokenRows gather(const std::vector<std::int64_t>& rows) const;

  std::string folder_;
  std::vector<Shard> shards_;
  std::map<std::string, TokenizerFile> tokenizer_;
  Split split_{0, 0};
  std::uint64_t seed_ = 0;
  std::int64_t group_ = 0;               ///< rows of similar length that stay together, 0 = any
  std::vector<std::int64_t> by_length_;  ///< with groups: the rows to train on, the longest first
  std::int64_t longest_ = 0, vocabulary_ = 0, padding_ = 0, tokens_ = 0, samples_ = 0, rows_ = 0;
  bool packed_ = false;
  std::string fingerprint_;
};

}  // namespace nanquest::trainer
