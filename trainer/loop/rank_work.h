/// RankWork: what the processes of a training do together: shares of a batch, sums, and what all must hold
/// alike. With one rank nothing is sent. One thread; every rank makes the same calls in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/parallel/group.h"
#include "trainer/task/attention_heads.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

class RankWork {
 public:
  /// `group` must outlive it.
  RankWork(Group& group, at::Device device) : group_(group), device_(device) {}

  /// The rows of a batch of `size` that this rank computes.
  Batch share_of(const Batch& batch, std::int64_t size) const;
  /// Random numbers that follow from the seed, the number of the batch and the rank.
  void seed(std::uint64_t seed, std::int64_t batch) const;
  /// The buffers of rank 0, for all.
  void take_first(const NamedTensors& buffers);
  /// Gradients of all ranks, added up; the sum of their losses. Throws if the ranks are at different steps.
  at::Tensor add_up(const at::Tensor& loss, const NamedTensors& parameters);
  /// The sum of the ranks' tallies; `any` gives one with the names, for a rank that looked at nothing.
  Tally add_up(Tally tally, const std::function<Tally()>& any);
  /// Of the last sum of gradients: which ranks' own losses or gradients were not finite, in words; the lowest
  /// of them, -1 if that is none.
  std::string bad_ranks(std::int32_t& lowest) const;
  /// The largest attention logits of all ranks.
  void share_peaks(const std::vector<AttentionHeads>& attention);
  /// Whether `text` and the weights are the same on all ranks.
  bool agree_on(std::string text, const NamedTensors& weights);

 private:
  Group& group_;
  at::Device device_;
  at::Tensor told_;        ///< of the last sum: the ranks' own losses and largest gradients; undefined = none
  std::int64_t turn_ = 0;  ///< sums of gradients so far, to see that all ranks are at the same one
};

}  // namespace nanquest::trainer
