/// Room trainer/text: learning to predict text, the task of nanquest-trainer itself.
///
///     std::unique_ptr<Task> task = make_text_task(std::move(*gpt), std::move(*data), {});
///
/// Never: prints, knows of loops and optimizers.
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
  double z_loss = 0;            ///< of `next_token_loss`, while it trains; held-out losses are without it
  std::int64_t vocabulary = 0;  ///< tokens that the model knows, 0 = those of the data; no setting
  std::int64_t longest = 0;     ///< positions that the model bears, 0 = those of the data; no setting
};

/// Declares them, in the group Optimizer.
void declare(SettingList& list, TextOptions& options);

/// Logits [samples, time, vocabulary] of a batch's tensors.
using LogitsOf = std::function<at::Tensor(const NamedTensors& batch, bool training)>;

/// A batch has `tokens` and `targets`, int64 [samples, time], and of packed rows `positions` and `texts`; the
/// loss is the mean over targets of `next_token_loss`. `model` must know `data->vocabulary()` tokens. Without
/// `logits` it is given the tokens alone, so packed rows need one.
std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, std::unique_ptr<TokenData> data,
                                     const TextOptions& options = {}, LogitsOf logits = {});
/// The same of text.
std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, TextData data,
                                     const TextOptions& options = {});

}  // namespace nanquest::trainer
