#include "replay/trace/replayer.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "probe/observe/op_traits.h"
#include "probe/record/record.h"
#include "probe/snapshot/check.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/culprit.h"
#include "probe/trace/phases.h"
#include "replay/trace/environment.h"
#include "replay/trace/lead.h"
#include "replay/trace/replayer_state.h"
#include "replay/trace/statistics.h"

namespace nanquest {

namespace {

constexpr double kFill = std::numeric_limits<double>::quiet_NaN();

/// Whether the hashes of new memory that nobody had written show that it was full of NaN.
bool was_filled(const SnapshotDoc& doc) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;  // elements
  return std::any_of(doc.ops.begin(), doc.ops.end(), [&](const OpRow& op) {
    const TensorRow* row = op.flags & kOpUninitialised ? find_row(doc, TensorId{op.first_output}) : nullptr;
    const StatsRow* stats = row ? find_row(doc, StatsId{row->stats}) : nullptr;
    if (!stats || !stats->has_hash) return false;
    std::int64_t elements = 1;
    for (const std::int64_t size : row->sizes) {
      if (size <= 0 || size > kMost / elements) return false;
      elements *= size;
    }
    const at::ScalarType type = scalar_type_of(row->dtype);
    if (!c10::isFloatingType(type)) return false;
    return trace::measure(at::full(row->sizes, kFill, type), false, true, doc.hash_kind).hash == stats->hash;
  });
}

}  // namespace

Result<at::Tensor> read_as_tensor(const SnapshotReader& file, const std::string& path) {
  Result<TensorData> read = file.read_tensor(path);
  if (!read) return read.error();
  at::Tensor tensor = at::empty(read->shape, scalar_type_of(read->dtype));
  if (tensor.nbytes() != read->bytes.size())
    return Error{ErrorCode::bad_file, file.path() + ": '" + path + "' has another size than it says", ""};
  if (!read->bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), read->bytes.data(), read->bytes.size());
  return tensor;
}

at::Tensor Replayer::Impl::load(const std::string& path) const {
  const auto known = data.find(path);
  if (known != data.end()) return known->second;
  if (!reader) throw std::runtime_error("'" + path + "' is not among the given tensors");
  Result<at::Tensor> tensor = read_as_tensor(*reader, path);
  if (!tensor) throw std::runtime_error(tensor.error().text());
  data.emplace(path, *tensor);
  return std::move(tensor).value();
}

Replayer::Replayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replayer::Replayer(Replayer&&) noexcept = default;
Replayer& Replayer::operator=(Replayer&&) noexcept = default;
Replayer::~Replayer() = default;

Result<Replayer> Replayer::open(const std::string& path) {
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  if (!reader) return reader.error();
  try {
    auto impl = std::make_unique<Impl>();
    impl->reader.emplace(std::move(reader).value());
    impl->planned = trace::make_plan(impl->recorded());
    impl->complete();
    return Replayer(std::move(impl));
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, path + ": " + e.what(), "the snapshot's trace can't be understood"};
  }
}

Result<Replayer> Replayer::from_memory(SnapshotDoc doc, std::map<std::string, at::Tensor> data, bool look) {
  try {
    auto impl = std::make_unique<Impl>();
    impl->own_doc = std::move(doc);
    impl->data = std::move(data);
    for (auto& [path, tensor] : impl->data) tensor = tensor.detach().cpu().contiguous();
    impl->planned = trace::make_plan(impl->recorded());
    if (look) impl->complete();
    return Replayer(std::move(impl));
  } catch (const std::exception& e) {
    return Error{ErrorCode::usage, std::string("the trace can't be understood: ") + e.what(), ""};
  }
}

const SnapshotDoc& Replayer::doc() const {
  return impl_->doc();
}
bool Replayer::has_file() const {
  return impl_->reader.has_value();
}
const SnapshotReader& Replayer::reader() const {
  return *impl_->reader;
}

Result<at::Tensor> Replayer::tensor(const std::string& path) const {
  try {
    return impl_->load(path);
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, e.what(), ""};
  }
}

SnapshotDoc Replayer::Impl::filled_in() {
  bool harmed = true;
  SnapshotDoc with = trace::fill(*this, &harmed);
  const auto bad = [&](std::int32_t row) {
    const TensorRow* tensor = find_row(with, TensorId{row});
    const StatsRow* stats = tensor ? find_row(with, StatsId{tensor->stats}) : nullptr;
    return stats && stats->non_finite() > 0;
  };
  const auto handed_out = [](const OpRow& op) { return (op.flags & kOpUninitialised) != 0; };
  const bool lost =
      !harmed && (bad(with.loss) || std::any_of(with.gradients.begin(), with.gradients.end(), bad));
  if (!lost || std::none_of(with.ops.begin(), with.ops.end(), handed_out)) return with;
  planned->unwritten = kFill;
  SnapshotDoc again = trace::fill(*this, &harmed);
  if (harmed) return again;
  planned->unwritten.reset();
  return with;
}

void Replayer::Impl::complete() {
  if (auto without = trace::without_refuted_lead(*this)) {
    unled = std::move(without);
    planned = trace::make_plan(recorded());
  }
  const SnapshotDoc& doc = recorded();
  const bool lacks = doc.culprit.op == kNone && doc.culprit.value.empty() && lacks_statistics(doc);
  if (!lacks && !doc.culprit.value.empty() && was_filled(doc)) planned->unwritten = kFill;
  const bool unjudged = !lacks && trace::has_unjudged_births(doc);
  SnapshotDoc with = lacks ? filled_in() : unjudged ? trace::judge_births(*this) : doc;
  const bool looked =
      unjudged ||
      with.stats.size() != doc.stats.size();  // otherwise nothing could be run, or the tables are invalid
  // Older recorders separated forward and optimizer by the caller, and knew fewer origins.
  const bool settled = check_doc(with) && settle_phases(with);
  const bool older =
      settled || (!doc.culprit.value.empty() && doc.culprit.origin == origin_name(SlotOrigin::produced));
  if (!looked && !older) return;
  const Culprit known = with.culprit;
  const auto name = [](const OpRow& op, std::int32_t at) { return argument_name(op.name, op.overload, at); };
  if ((looked || !known.value.empty()) && !find_culprit(with, name)) with.culprit = known;
  filled = std::move(with);
}

RunResult Replayer::run(const RunOptions& options) const {
  return impl_->run(options, {});
}

RunResult Replayer::run(const RunOptions& options, const Checkpoint& from) const {
  return impl_->run(options, {}, &from);
}

std::int32_t Checkpoint::op() const {
  return state_->op.row();
}
at::Tensor Checkpoint::value(std::int32_t tensor) const {
  return state_->slots.view(TensorId{tensor});
}

std::uint64_t Checkpoint::bytes() const {
  return state_->slots.bytes();
}

Checkpoint Replayer::checkpoint(std::int32_t op, const Checkpoint* from) const {
  const trace::RunScope scope(doc());
  RunOptions options;
  options.stop_after = op - 1;
  std::optional<trace::Run> run;
  if (from)
    run.emplace(*impl_, options, from->state());
  else
    run.emplace(*impl_, options);
  for (OpId next{from ? from->op() : 0}; next.row() < op; next = OpId{next.row() + 1}) {
    run->step(next);
    run->finish_op(next);
  }
  return Checkpoint(run->leave(OpId{op}));
}

RunResult Replayer::Impl::run(const RunOptions& options, const std::function<void(trace::Run&)>& at_end,
                              const Checkpoint* from) const {
  const auto start = std::chrono::steady_clock::now();
  RunResult result;
  try {
    const trace::RunScope scope(doc());
    std::optional<trace::Run> run;
    if (from)
      run.emplace(*this, options, from->state());
    else
      run.emplace(*this, options);
    std::int32_t decided_at = kNone;
    for (const OpId op : trace::ops_to_run(doc(), options)) {
      if (from && op < from->state().op) continue;
      run->step(op);
      run->finish_op(op);
      if (options.stop_when_harmed && !options.local && run->harmed_after(op)) {
        decided_at = op.row();
        break;
      }
    }
    if (at_end) at_end(*run);
    result = run->finish();
    result.decided_at = decided_at;
  } catch (const std::exception& e) {
    // Only what the caller passed in (edits, on_op) or exhausted memory can throw here.
    result.ops.resize(doc().ops.size());
    if (!result.ops.empty()) result.ops[0].error = std::string("the run broke off: ") + e.what();
    ++result.failed;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace nanquest
