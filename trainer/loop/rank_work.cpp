#include "trainer/loop/rank_work.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>

#include <cmath>
#include <limits>

#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

/// A number that is another one for each of its three, as good as drawn (the finalizer of splitmix64).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t step, std::uint64_t rank) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (step + 1) + 0xd1b54a32d192ed03u * (rank + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, t] : named) tensors.push_back(t.detach());
  return tensors;
}

/// What a rank says of itself beside its gradients, as one vector that is added up with them: each writes
/// only its own places. Losses and largest gradients of all ranks, how many have a gradient of each
/// parameter, and which sum this is.
struct Told {
  std::int64_t ranks, parameters;
  at::Tensor all;

  at::Tensor losses() const { return all.narrow(0, 0, ranks); }
  at::Tensor largest() const { return all.narrow(0, ranks, ranks); }
  at::Tensor counts() const { return all.narrow(0, 2 * ranks, parameters); }
  at::Tensor turn() const { return all.select(0, 2 * ranks + parameters); }
};

constexpr std::int64_t kTurns = 4096;  // numbers that fp32 holds, times any number of ranks there will be

}  // namespace

Batch RankWork::share_of(const Batch& batch, std::int64_t size) const {
  if (group_.alone()) return batch;
  const std::int64_t rows = size / group_.size(), begin = rows * group_.rank();
  Batch share;
  for (const auto& [name, t] : batch.tensors) share.tensors.emplace_back(name, t.narrow(0, begin, rows));
  const auto part = [&](const std::vector<std::string>& all) {
    if (all.empty()) return all;
    return std::vector<std::string>(all.begin() + begin, all.begin() + begin + rows);
  };
  share.ids = part(batch.ids);
  share.texts = part(batch.texts);
  return share;
}

void RankWork::seed(std::uint64_t seed, std::int64_t batch) const {
  if (group_.alone()) return;
  seed_generators(device_,
                  mixed(seed, static_cast<std::uint64_t>(batch), static_cast<std::uint64_t>(group_.rank())));
}

void RankWork::take_first(const NamedTensors& buffers) {
  if (!group_.alone()) group_.take_first(tensors_of(buffers));
}

at::Tensor RankWork::add_up(const at::Tensor& loss, const NamedTensors& parameters) {
  if (group_.alone()) return loss;
  const PhaseScope phase(Phase::backward);
  const at::NoGradGuard no_grad;
  Told told{group_.size(), static_cast<std::int64_t>(parameters.size()), {}};
  std::vector<at::Tensor> gradients, own, none;
  std::vector<float> counts;
  for (const auto& [name, p] : parameters) {
    const bool has = p.grad().defined();
    if (!has) {
      none.push_back(p);
      p.mutable_grad() = at::zeros_like(p);
    } else {
      own.push_back(p.grad());
    }
    counts.push_back(has ? 1.0F : 0.0F);
    gradients.push_back(p.grad());
  }
  told.all = at::zeros({2 * told.ranks + told.parameters + 1}, loss.options().dtype(at::kFloat));
  told.losses().select(0, group_.rank()).copy_(loss);
  if (!own.empty())
    told.largest()
        .select(0, group_.rank())
        .copy_(at::stack(at::_foreach_norm(own, std::numeric_limits<double>::infinity())).amax());
  told.counts().copy_(at::tensor(counts));
  turn_ = (turn_ + 1) % kTurns;
  told.turn().fill_(turn_);
  gradients.push_back(told.all);
  group_.sum(gradients);
  TORCH_CHECK(told.turn().item<double>() == static_cast<double>(turn_ * told.ranks),
              "the ranks are not at the same step any more");
  if (!none.empty()) {
    const at::Tensor with = told.counts().cpu();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (with.const_data_ptr<float>()[i] == 0) parameters[i].second.mutable_grad().reset();
  }
  told_ = told.all.narrow(0, 0, 2 * told.ranks);
  return told.losses().sum();
}

Tally RankWork::add_up(Tally tally, const std::function<Tally()>& any) {
  if (group_.alone()) return tally;
  if (tally.empty()) {  // for the names
    tally = any();
    for (auto& [name, value] : tally) value = 0;
  }
  std::vector<double> values;
  for (const auto& [name, value] : tally) values.push_back(value);
  const at::Tensor sums = at::tensor(values, at::TensorOptions().dtype(at::kDouble)).to(device_);
  group_.sum({sums});
  const at::Tensor now = sums.cpu();
  const double* at = now.const_data_ptr<double>();
  for (auto& [name, value] : tally) value = *at++;
  return tally;
}

std::string RankWork::bad_ranks(std::int32_t& lowest) const {
  lowest = -1;
  if (group_.alone() || !told_.defined()) return "";
  const at::Tensor told = told_.cpu();
  const auto* value = told.const_data_ptr<float>();
  std::string text;
  for (std::int32_t rank = 0; rank < group_.size(); ++rank) {
    const float loss = value[rank], gradient = value[group_.size() + rank];
    if (std::isfinite(loss) && std::isfinite(gradient)) continue;
    if (lowest < 0) lowest = rank;
    if (!text.empty()) text += ", ";
    text += "rank " + std::to_string(rank);
    text += !std::isfinite(loss) ? std::isnan(loss) ? "'s loss was NaN" : "'s loss was infinite"
                                 : "'s gradients were not finite";
  }
  return text.empty() ? text : text + " before the ranks' parts were added up";
}

void RankWork::share_peaks(const std::vector<AttentionHeads>& attention) {
  if (group_.alone() || attention.empty()) return;
  std::vector<at::Tensor> peaks;
  peaks.reserve(attention.size());
  for (const AttentionHeads& layer : attention) peaks.push_back(layer.peaks);
  group_.largest(std::move(peaks));
}

bool RankWork::agree_on(std::string text, const NamedTensors& weights) {
  if (group_.alone()) return true;
  for (const auto& [name, p] : weights) {
    const at::Tensor t = p.detach().to(at::kCPU).contiguous();
    text.append("\n").append(std::to_string(hash_contents(t.const_data_ptr(), t.nbytes())));
  }
  // So that it has a negative.
  const auto hash = static_cast<std::int64_t>(hash_bytes(text.data(), text.size()) >> 1);
  const std::int64_t least = group_.least(hash);
  return least == -group_.least(-hash);
}

}  // namespace nanquest::trainer
