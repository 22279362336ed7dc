/// Tokens in the files of nanoGPT and llm.c: .bin files, one token after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/data/mapped_file.h"
#include "trainer/data/order.h"
#include "trainer/data/token_data.h"

namespace nanquest::trainer {

/// Windows of `context` targets, cut one behind the other out of each file; a window never crosses files, its
/// id is "file@token".
///
/// nanoGPT: 16-bit tokens and nothing else. llm.c: 256 32-bit numbers (20240520, 1, tokens, 0 …) and 16-bit
/// tokens, or (20240801, 7, tokens, 0 …) and 32-bit ones; all little-endian.
class BinData final : public TokenData {
 public:
  /// A file, or a folder of them: there files with val in their name are held out (val.bin,
  /// fineweb_val_000000.bin), the others are learned from; without such files `eval_every` determines what is
  /// held out. `bad_file` naming the path. A token that is not below `options.vocabulary` is an error of its
  /// sample.
  static Result<std::unique_ptr<BinData>> open(const std::string& path, const DataOptions& options);
  /// Whether `path` is a .bin file, or a folder with one in it.
  static bool is(const std::string& path);

  std::int64_t train_rows() const override { return split_.to_train(); }
  std::int64_t eval_rows() const override;
  TokenRows train_batch(std::int64_t position, std::int64_t size) const override;
  TokenRows eval_batch(std::int64_t first, std::int64_t size) const override;
  std::int64_t longest() const override { return options_.context; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::string description() const override;
  /// Of large files only parts are read: size, beginning, end, and 64 blocks between.
  std::string fingerprint() const override;

 private:
  struct File {
    std::string path;
    MappedFile mapped;
    std::size_t begin = 0;  ///< bytes before the tokens
    bool wide = false;      ///< 32 bits
    std::int64_t tokens = 0;
    std::int64_t first_window = 0;  ///< of all windows of its kind
    std::int64_t token(std::int64_t n) const;
  };

  Status add(const std::string& path, std::vector<File>& files);
  /// Numbers the windows of `files` and returns how many there are.
  std::int64_t cut(std::vector<File>& files) const;
  std::int64_t largest() const;
  TokenRows gather(const std::vector<File>& files, const std::vector<std::int64_t>& windows) const;

  DataOptions options_;
  std::vector<File> train_, eval_;
  std::int64_t eval_windows_ = 0;  ///< of files of their own
  std::int64_t vocabulary_ = 0, tokens_ = 0;
  Split split_{0, 0};  ///< of the windows of `train_`
};

}  // namespace nanquest::trainer
