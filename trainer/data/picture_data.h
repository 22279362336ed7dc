/// Pictures with labels made by nanquest prepare: a folder of shards with a manifest.
///
///     Result<std::unique_ptr<PictureData>> data = PictureData::open("prepared", {.seed = 42});
///     PictureRows rows = (*data)->train_batch(position, 8);    // always the same for the same position
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/data/order.h"
#include "trainer/data/picture_file.h"
#include "trainer/data/token_data.h"
#include "trainer/data/tokenizer_file.h"

namespace nanquest::trainer {

/// Some pictures, on the CPU.
struct PictureRows {
  at::Tensor pixels;               ///< fp32 [rows, channels, height, width], as the model sees them
  at::Tensor labels;               ///< int64 [rows]: 1 = Yes, 0 = No
  std::vector<std::string> ids;    ///< "file:line"
  std::vector<std::string> texts;  ///< the picture's file, as valid UTF-8
};

class PictureData {
 public:
  /// Reads `folder`/manifest.json, maps its shards and checks them against it. Of the options only the seed
  /// and `eval_every` are used. `bad_file` names what is wrong; `usage` if it holds text, or nothing is left
  /// to train on.
  static Result<std::unique_ptr<PictureData>> open(const std::string& folder, const DataOptions& options);

  std::int64_t train_rows() const { return split_.to_train(); }
  std::int64_t eval_rows() const { return split_.held_out(); }
  std::int64_t rows() const { return rows_; }
  /// Rows [position, position + size) of the endless shuffled order.
  PictureRows train_batch(std::int64_t position, std::int64_t size) const;
  /// Held-out rows [first, first + size), in file order.
  PictureRows eval_batch(std::int64_t first, std::int64_t size) const;
  /// Rows [first, first + size) of all, in file order.
  PictureRows batch(std::int64_t first, std::int64_t size) const;

  /// The question for each picture: tokens, including those that the picture replaces.
  const std::vector<std::int64_t>& question() const { return question_; }
  /// The tokens of the answers.
  std::int64_t yes() const { return yes_; }
  std::int64_t no() const { return no_; }
  /// Channels, height and width of a picture.
  const std::vector<std::int64_t>& shape() const { return shape_; }

  std::string description() const;
  /// The same without mentioning held-out data: for data that is held out completely.
  std::string contents() const;
  /// Equal for equal data in the same order, as text.
  std::string fingerprint() const { return fingerprint_; }
  const std::string& folder() const { return folder_; }
  /// Whether the tokenizer of the model in `folder` made the question; `usage` names the file that differs.
  Status made_for(const std::string& folder) const;

 private:
  struct Shard {
    PictureFile file;
    std::string source;          ///< the file that its lines are of
    std::int64_t first_row = 0;  ///< of all rows
  };
  struct Reader;  ///< of the manifest

  Status open_shards(const std::string& folder, const Reader& manifest);
  PictureRows gather(const std::vector<std::int64_t>& rows) const;

  std::string folder_, fingerprint_;
  std::vector<Shard> shards_;
  std::map<std::string, TokenizerFile> tokenizer_;
  std::vector<std::int64_t> question_, shape_;
  std::int64_t yes_ = 0, no_ = 0, rows_ = 0, answered_yes_ = 0;
  Split split_{0, 0};
  std::uint64_t seed_ = 0;
};

}  // namespace nanquest::trainer
