/// Room trainer/yesno: learning to answer a question about pictures with Yes or No, by the next token.
///
///     std::unique_ptr<Task> task = make_yesno_task(std::move(*llava), std::move(*pictures), nullptr);
///
/// The room never prints, and does not know loops and optimizers.
#pragma once

#include <memory>

#include "probe/base/result.h"
#include "trainer/data/picture_data.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

/// The error for a model without a vision part.
Error sees_no_pictures(const PretrainedModel& model);

/// A batch has `pixels`, fp32 [samples, channels, height, width], `tokens`, int64 [samples, time], and
/// `labels`, int64 [samples], 1 for Yes. The loss is the cross-entropy of the two answers' logits after the
/// last token, the mean over samples; held-out samples also give "tpr" and "fpr", the shares of those
/// labelled Yes and No that are answered with Yes. `held_out` are the samples for evaluation; null: those
/// that `data` holds out. `usage` names what in the data does not fit the model.
Result<std::unique_ptr<Task>> make_yesno_task(std::unique_ptr<PretrainedModel> model,
                                              std::unique_ptr<PictureData> data,
                                              std::unique_ptr<PictureData> held_out);

}  // namespace nanquest::trainer
