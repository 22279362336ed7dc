/// Room trainer/text: learning to predict text, the task of nanquest-trainer itself.
///
///     std::unique_ptr<Task> task = make_text_task(std::move(*gpt), std::move(*data), {});
///
/// The room never prints, and does not know loops and optimizers.
#pragma once

#include <functional>
#include <memory>

#include "trainer/config/setting_list.h"
#include "trainer/data/text_data.h"
#include "trainer/data/token_data.h"
#include "trainer/model/model.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

struct TextOptions {
  double z_loss = 0;            ///< of `next_token_loss`, in training only; held-out losses do not include it
  std::int64_t vocabulary = 0;  ///< tokens that the model knows, 0 = those of the data; not a setting
  std::int64_t longest = 0;     ///< positions that the model allows, 0 = those of the data; not a setting
};

/// Declares them, in the group Optimizer.
void declare(SettingList& list, TextOptions& options);

/// Logits [samples, time, vocabulary] of a batch's tensors.
using LogitsOf = std::function<at::Tensor(const NamedTensors& batch, bool training)>;

/// A batch has `tokens` and `targets`, int64 [samples, time], and for packed rows `positions` and `texts`;
/// the loss is the mean over targets of `next_token_loss`. `model` must know `data->vocabulary()` tokens.
/// Without `logits` it gets only the tokens, so packed rows need `logits`.
std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, std::unique_ptr<TokenData> data,
                                     const TextOptions& options = {}, LogitsOf logits = {});
/// The same for text.
std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, TextData data,
                                     const TextOptions& options = {});

}  // namespace nanquest::trainer
