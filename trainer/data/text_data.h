/// Room trainer/data: text files as bytes, cut into windows, in an order that needs no memory.
///
///     Result<TextData> data = TextData::open("docs", {.context = 128, .seed = 42});
///     TextWindows w = data->train_batch(position, 8);       // the same for ever for the same position
///
/// A window never crosses files; its id is "file@offset". Every `eval_every`-th window is held out.
/// Never: prints, shuffles in place, depends on the order in which a folder is listed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

struct DataOptions {
  std::int64_t context = 128;    ///< bytes a window predicts; it reads one more
  std::uint64_t seed = 42;       ///< of the order
  std::int64_t eval_every = 20;  ///< every n-th window is held out; 0 = none
};

/// Declares --data (into `path`) and --holdout-every. The window's length is the model's to say, the seed the
/// loop's.
void declare(SettingList& list, std::string& path, DataOptions& options);
/// Names the first setting that makes no sense.
Status check(const DataOptions& options);

struct TextWindows {
  at::Tensor tokens, targets;      ///< int64 [batch, context] on the CPU
  std::vector<std::string> ids;    ///< "file@offset", one a row
  std::vector<std::string> texts;  ///< the window as valid UTF-8, broken bytes shown as '?'
};

class TextData {
 public:
  /// Reads a file, or every text-like file below a folder (sorted by path). A file named directly must be
  /// UTF-8 text; inside a folder others are skipped and counted, and hidden folders, build trees and run
  /// directories are not entered. Errors: `bad_file`, naming the path.
  static Result<TextData> open(const std::string& path, const DataOptions& options);

  std::int64_t train_windows() const { return static_cast<std::int64_t>(train_.size()); }
  std::int64_t eval_windows() const { return static_cast<std::int64_t>(eval_.size()); }
  /// Windows [position, position + size) of the endless shuffled order; position counts windows from 0 and
  /// epochs follow one another, each with its own order.
  TextWindows train_batch(std::int64_t position, std::int64_t size) const;
  /// Held-out windows [first, first + size), in file order.
  TextWindows eval_batch(std::int64_t first, std::int64_t size) const;

  std::int64_t context() const { return options_.context; }  ///< targets a window
  std::int64_t files() const { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::int64_t skipped_binary() const { return skipped_binary_; }  ///< not UTF-8 text
  std::int64_t skipped_short() const { return skipped_short_; }    ///< shorter than one window
  std::int64_t skipped_other() const {
    return skipped_other_;
  }  ///< unreadable, or an ending that is not text
  /// Split and nq64 of names, sizes and bytes, as text: equal for equal data.
  std::string fingerprint() const;

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
  TextWindows gather(const std::vector<Window>& windows) const;

  DataOptions options_;
  std::vector<File> files_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Window> train_, eval_;
  std::int64_t skipped_binary_ = 0, skipped_short_ = 0, skipped_other_ = 0;
};

}  // namespace nanquest::trainer
