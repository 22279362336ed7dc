#include "trainer/data/token_data.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest::trainer {

at::Tensor filled_up(const at::Tensor& t, std::int64_t time, std::int64_t value) {
  return t.size(1) >= time ? t : at::constant_pad_nd(t, {0, time - t.size(1)}, value);
}

void declare(SettingList& list, std::string& path, DataOptions& options, bool takes_text) {
  list.group("Run");
  const std::string
      text =
          "text file, or folder of text files (read recursively); tokens as nanoGPT's and llm.c's .bin, or a "
          "folder of nanquest prepare",
      tokens =
          "folder of nanquest prepare; or tokens as nanoGPT's and llm.c's .bin, made with the model's "
          "tokenizer";
  list.add("data", path, takes_text ? text : tokens).type_name = "FILE|DIR";
  list.add("holdout-every", options.eval_every, "every n-th window or row is held out (0 = none)");
  list.add("vocabulary", options.vocabulary,
           "tokens that a .bin is of (0 = up to the largest it holds, for which all of it is read)");
  list.incidental({"data", "holdout-every", "vocabulary"});  // compared by fingerprint
  list.check([&] { return check(options); });
}

Status check(const DataOptions& options) {
  if (options.vocabulary < 0)
    return Error{ErrorCode::usage, "vocabulary must not be negative", "0 takes it from the data"};
  if (options.eval_every >= 0 && options.eval_every != 1) return {};
  return Error{ErrorCode::usage,
               "holdout-every " + std::to_string(options.eval_every) + " leaves nothing to train on",
               "0 holds nothing out, 20 each twentieth window"};
}

}  // namespace nanquest::trainer
