/// Room trainer/text: learning to predict text, the task of nanquest-trainer itself.
///
///     std::unique_ptr<Task> task = make_text_task(std::move(*gpt), std::move(*data));
///
/// Never: prints, knows of loops and optimizers.
#pragma once

#include <memory>

#include "trainer/config/setting_list.h"
#include "trainer/data/text_data.h"
#include "trainer/model/model.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

struct TextOptions {
  double z_loss = 0;  ///< of `next_token_loss`, while it trains; held-out losses are without it
};

/// Declares them, in the group Optimizer.
void declare(SettingList& list, TextOptions& options);

/// A batch has `tokens` and `targets`, int64 [samples, context]; the loss is the mean over targets of
/// `next_token_loss`. `model` must know 256 tokens.
std::unique_ptr<Task> make_text_task(std::unique_ptr<Model> model, TextData data,
                                     const TextOptions& options = {});

}  // namespace nanquest::trainer
