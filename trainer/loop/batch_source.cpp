#include "trainer/loop/batch_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <system_error>

namespace nanquest::trainer {
namespace {

constexpr const char* kMend =
    "mend it, or leave it out: --quarantine FILE with its id in it, or another --on-incident";

/// The rows of `batch` that `out` does not name.
Batch without(const Batch& batch, const std::vector<bool>& out) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i]) rows.push_back(static_cast<std::int64_t>(i));
  const at::Tensor index = at::tensor(rows, at::kLong);
  Batch kept;
  for (const auto& [name, t] : batch.tensors) kept.tensors.emplace_back(name, t.index_select(0, index));
  for (const std::int64_t row : rows) {
    const auto at = static_cast<std::size_t>(row);
    if (at < batch.ids.size()) kept.ids.push_back(batch.ids[at]);
    if (at < batch.texts.size()) kept.texts.push_back(batch.texts[at]);
  }
  return kept;
}

/// Puts the rows of `more` behind those of `batch`.
Status append(const Task& task, Batch& batch, Batch more) {
  task.even_out(batch, more);
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    at::Tensor& t = batch.tensors[i].second;
    const at::Tensor& other = more.tensors[i].second;
    if (t.sizes().slice(1) != other.sizes().slice(1))
      return Error{ErrorCode::usage,
                   batch.tensors[i].first +
                       ": samples of other batches have another shape, so none can stand in for one "
                       "that may not be used",
                   "let the task's even_out pad them to one length"};
    t = at::cat({t, other});
  }
  batch.ids.insert(batch.ids.end(), more.ids.begin(), more.ids.end());
  batch.texts.insert(batch.texts.end(), more.texts.begin(), more.texts.end());
  return {};
}

std::int64_t rows_of(const Batch& batch) {
  return batch.tensors.empty() ? 0 : batch.tensors.front().second.size(0);
}

}  // namespace

BatchSource::BatchSource(const LoopConfig& config, const Task& task, const Counters& counters,
                         std::function<void(const std::string&)> say)
    : config_(config), task_(task), counters_(counters), say_(std::move(say)) {}

Status BatchSource::open_quarantine(bool writes) {
  if (config_.quarantine.empty()) return {};
  Result<Quarantine> quarantine = writes ? Quarantine::open(config_.quarantine)
                                         : Quarantine::read(config_.quarantine, config_.not_yet_quarantined);
  if (!quarantine) return quarantine.error();
  quarantine_ = std::move(*quarantine);
  return {};
}

void BatchSource::tell_of_quarantine() const {
  if (!quarantine_) return;
  for (const std::string& remark : quarantine_->remarks()) say_(remark);
  say_("quarantine: " + config_.quarantine + " names " + std::to_string(quarantine_->size()) + " samples");
}

Result<std::vector<bool>> BatchSource::unfit(const Samples& samples) {
  const Batch& batch = samples.batch;
  std::vector<bool> out(static_cast<std::size_t>(rows_of(batch)), false);
  if (quarantine_)
    for (std::size_t i = 0; i < out.size() && i < batch.ids.size(); ++i)
      out[i] = quarantine_->holds(batch.ids[i]);
  for (const Fault& fault : samples.faults) {
    const auto row = static_cast<std::size_t>(fault.row);
    if (out.at(row)) continue;
    out[row] = true;
    const std::string id = row < batch.ids.size() ? batch.ids[row]
                                                  : "row " + std::to_string(row) + " of the batch at " +
                                                        std::to_string(counters_.data_position);
    if (config_.policy == Policy::stop)
      return Error{ErrorCode::bad_file, "sample " + id + ": " + fault.what, kMend};
    if (!unfit_.insert(id).second) continue;  // it comes again in each pass
    say_("sample " + id + ": " + fault.what + "; it is left out");
    drop({id}, fault.what);
  }
  return out;
}

Result<Batch> BatchSource::next() {
  const std::int64_t size = config_.batch_size;
  Batch batch;
  span_ = 0;
  while (rows_of(batch) < size) {
    const std::int64_t missing = size - rows_of(batch);
    const std::int64_t position = counters_.data_position + span_;
    Samples samples = prefetcher_ ? prefetcher_->take(position, missing) : load(task_, position, missing);
    span_ += missing;
    const Result<std::vector<bool>> out = unfit(samples);
    if (!out) return out.error();
    Batch more = std::move(samples.batch);
    if (std::find(out->begin(), out->end(), true) != out->end()) more = without(more, *out);
    if (batch.tensors.empty()) {
      batch = std::move(more);
    } else if (Status s = append(task_, batch, std::move(more)); !s) {
      return s.error();
    }
    if (rows_of(batch) == size && task_.loss_count(batch) <= 0) {
      const std::string what =
          "the batch of samples " + batch.ids.front() + " to " + batch.ids.back() + " has no target";
      if (config_.policy == Policy::stop) return Error{ErrorCode::bad_file, what, kMend};
      say_(what + "; they are left out");
      drop(batch.ids, "no target is left");
      batch = {};
    }
    if (rows_of(batch) == 0 && span_ >= task_.train_samples() + size)
      return Error{ErrorCode::bad_file,
                   "none of the " + std::to_string(task_.train_samples()) + " samples may be used",
                   quarantine_ ? "look at " + quarantine_->path() : "look at the lines above"};
  }
  if (prefetcher_) prefetcher_->ahead(counters_.data_position + span_, size);
  return batch;
}

void BatchSource::begin_ahead() {
  if (!config_.prefetch) return;
  try {
    prefetcher_ = std::make_unique<Prefetcher>(task_);
  } catch (const std::system_error& e) {
    say_(std::string("no thread to make batches ahead on (") + e.what() +
         "): each is made when it is needed");
  }
}

void BatchSource::settle() {
  if (prefetcher_) prefetcher_->settle();
}

void BatchSource::drop(const std::vector<std::string>& ids, const std::string& why) {
  dropped.insert(dropped.end(), ids.begin(), ids.end());
  if (!quarantine_) return;
  const std::string where = "batch " + std::to_string(counters_.data_steps) + " of " + config_.run_dir;
  if (Status s = quarantine_->add(ids, where + ": " + why); !s) say_(s.error().text());
}

}  // namespace nanquest::trainer
