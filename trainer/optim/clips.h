/// Limits on an update beyond the loop's clip of the global norm. Each wraps an optimizer and is one itself.
/// Its memory is part of its state, so a checkpoint, a rollback and an undone step include it.
///
///     Result<std::unique_ptr<Optimizer>> adamw = make_adamw(weights, {});
///     std::unique_ptr<Optimizer> held = make_zclip(std::move(*adamw), {});
///
/// Gradients must be finite, as they are after the gate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/attention_heads.h"

namespace nanquest::trainer {

/// Scales the gradient of every module (of all its weights together; a module is a name without its last
/// part) down to at most `largest`, so that one that explodes does not take the others' share of a common
/// clip.
std::unique_ptr<Optimizer> make_module_clip(std::unique_ptr<Optimizer> inner, double largest);

/// ZClip (Kumar and others, 2025): a norm that is far above recent norms is reduced to their level.
struct ZClipOptions {
  double z = 2.5;            ///< standard deviations above which it acts
  double alpha = 0.97;       ///< of the moving mean and variance of norms: the share of the past
  std::int64_t warmup = 25;  ///< steps that initialise mean and variance; it does not act in them
};

/// For a z-score s = (norm - mean) / deviation above `z`, the gradient is scaled to the norm mean + (z² / s)
/// · deviation; mean and variance are updated with the resulting norm.
std::unique_ptr<Optimizer> make_zclip(std::unique_ptr<Optimizer> inner, const ZClipOptions& options);

/// SPAM (Huang and others, 2025): elements that spike are clipped individually, and Adam's moments are reset
/// regularly, because a spike stays in them for hundreds of steps.
struct SpamOptions {
  double threshold = 5000;  ///< an element with g² > threshold · v becomes sign(g) · sqrt(threshold · v)
  std::int64_t interval = 500;  ///< steps between resets of the moments; 0 = never
  std::int64_t warmup = 150;    ///< steps after a reset in which the rate rises along a cosine
  std::int64_t settle = 20;  ///< steps after the start or a reset in which v is too inaccurate for clipping
};

/// `usage` if `inner` has no second moments ("exp_avg_sq.NAME"): it wraps only AdamW.
Result<std::unique_ptr<Optimizer>> make_spam(std::unique_ptr<Optimizer> inner, const SpamOptions& options);

/// QK-Clip of MuonClip (Kimi Team, "Kimi K2: open agentic intelligence", 2025, arXiv:2507.20534, section
/// 2.1): after the update, queries and keys (and their biases) of each head whose largest logit in this step
/// was above `tau` are scaled by √(tau / that logit) each. Without the update itself the same batch would now
/// have `tau`. Moments stay as they are. Its numbers are "qk_logit", the largest logit of the step, and
/// "qk_clipped", the number of scaled heads. `usage` if there are no `layers`.
Result<std::unique_ptr<Optimizer>> make_qk_clip(std::unique_ptr<Optimizer> inner,
                                                std::vector<AttentionHeads> layers, double tau);

/// The switches of all of them, as a person sets them: 0 or false = off.
struct ClipSwitches {
  double module_clip = 0, qk_clip = 0;
  bool zclip = false, spam = false;
};

/// Declares them, in the group Optimizer; QK-Clip only for models that show their attention heads.
void declare(SettingList& list, ClipSwitches& switches, bool shows_heads = true);
/// Wraps `inner` with the enabled ones: gradients pass the module clip first, then SPAM, then ZClip; QK-Clip
/// changes the weights at the end. `layers` are those that it clips.
Result<std::unique_ptr<Optimizer>> with_clips(std::unique_ptr<Optimizer> inner, const ClipSwitches& switches,
                                              std::vector<AttentionHeads> layers = {});

}  // namespace nanquest::trainer
