/// Room trainer/data: text files as bytes, cut into windows, in an order that needs no memory.
///
///     Result<TextData> data = TextData::open("docs", {.context = 128, .seed = 42});
///     TokenRows w = data->train_batch(position, 8);         // always the same for the same position
///
/// A window never crosses files; its id is "file@offset". Every `eval_every`-th window is held out. Does not
/// print, shuffle in place, or depend on the order in which a folder is listed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/data/order.h"
#include "trainer/data/token_data.h"

namespace nanquest::trainer {

class TextData final : public TokenData {
 public:
  /// Reads a file, or every text-like file below a folder (sorted by path). A file named directly must be
  /// UTF-8 text; inside a folder others are skipped and counted, and hidden folders, build trees and run
  /// directories are not entered. Errors: `bad_file`, naming the path.
  static Result<TextData> open(const std::string& path, const DataOptions& options);

  std::int64_t train_rows() const override { return split_.to_train(); }
  std::int64_t eval_rows() const override { return split_.held_out(); }
  TokenRows train_batch(std::int64_t position, std::int64_t size) const override;
  TokenRows eval_batch(std::int64_t first, std::int64_t size) const override;
  std::int64_t longest() const override { return options_.context; }
  std::int64_t vocabulary() const override { return 256; }
  std::string description() const override;
  /// Split and nq64 of names, sizes and bytes, as text: equal for equal data.
  std::string fingerprint() const override;

  std::int64_t files() const { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::int64_t skipped_binary() const { return skipped_binary_; }  ///< not UTF-8 text
  std::int64_t skipped_short() const { return skipped_short_; }    ///< shorter than one window
  std::int64_t skipped_other() const {
    return skipped_other_;
  }  ///< unreadable, or an ending that is not text
 private:
  struct File {
    std::string path;
    std::size_t begin = 0, size = 0;  ///< range of bytes_
  };
  struct Window {
    std::uint32_t file = 0;
    std::uint32_t offset = 0;  ///< in the file
  };

  Status add_file(const std::string& path, bool named);
  Status add_folder(const std::string& path);
  void cut();
  TokenRows gather(const std::vector<Window>& windows) const;

  DataOptions options_;
  std::vector<File> files_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Window> windows_;
  Split split_{0, 0};
  std::int64_t skipped_binary_ = 0, skipped_short_ = 0, skipped_other_ = 0;
};

}  // namespace nanquest::trainer
