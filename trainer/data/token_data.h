/// Data as rows of tokens, from any kind of file: the data of a language task.
///
///     Result<std::unique_ptr<TokenData>> data = open_tokens("prepared", {.seed = 42});      // open_tokens.h
///     TokenRows rows = (*data)->train_batch(position, 8);    // always the same for the same position
///
/// Does not print or shuffle in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

/// Target of a position that is left out of the loss: ignore_index of torch.nn.functional.cross_entropy.
inline constexpr std::int64_t kLeftOut = -100;

struct DataOptions {
  std::int64_t context =
      128;                  ///< tokens a window predicts, where data is cut into windows; it reads one more
  std::uint64_t seed = 42;  ///< of the order
  std::int64_t eval_every = 20;  ///< every n-th row is held out; 0 = none
  std::int64_t vocabulary = 0;   ///< tokens that a .bin may hold; 0 = up to its largest
};

/// Declares --data (into `path`; with text or without among what it may be), --holdout-every and
/// --vocabulary. The window's length belongs to the model, the seed to the loop.
void declare(SettingList& list, std::string& path, DataOptions& options, bool takes_text = true);
/// Names the first invalid setting.
Status check(const DataOptions& options);

/// Some rows, padded at their ends to the longest of them. int64 [rows, time] on the CPU.
struct TokenRows {
  at::Tensor tokens, targets;  ///< the token after each; kLeftOut where there is none to learn
  /// For rows that hold several texts: the position of a token in its text, and that text's number in the
  /// row. Undefined if a row is one text.
  at::Tensor positions = {}, parts = {};
  std::vector<std::string> ids = {};    ///< one a row: "file@offset", "file:line", "file:3+7"
  std::vector<std::string> texts = {};  ///< one a row as valid UTF-8, or none
};

class TokenData {
 public:
  virtual ~TokenData() = default;

  virtual std::int64_t train_rows() const = 0;
  virtual std::int64_t eval_rows() const = 0;
  /// Rows [position, position + size) of the endless shuffled order; position counts rows from 0 and epochs
  /// follow one another, each with its own order.
  virtual TokenRows train_batch(std::int64_t position, std::int64_t size) const = 0;
  /// Held-out rows [first, first + size), in file order.
  virtual TokenRows eval_batch(std::int64_t first, std::int64_t size) const = 0;

  /// The largest number of targets in a row.
  virtual std::int64_t longest() const = 0;
  /// All tokens are below this.
  virtual std::int64_t vocabulary() const = 0;
  /// What a row is padded with.
  virtual std::int64_t padding() const { return 0; }
  /// Whether rows hold several texts, so that a model must keep them apart.
  virtual bool packed() const { return false; }

  /// "3 files, 1200 bytes, 70 windows to train on, 4 held out".
  virtual std::string description() const = 0;
  /// Equal for equal data in the same order, as text.
  virtual std::string fingerprint() const = 0;
};

/// `t` [rows, time] as [rows, `time`] or more, padded with `value` on the right.
at::Tensor filled_up(const at::Tensor& t, std::int64_t time, std::int64_t value);

}  // namespace nanquest::trainer
