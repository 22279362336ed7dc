#include "replay/report/repro_call.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <set>

#include "probe/observe/op_traits.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/one_up.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/op_facts.h"
#include "replay/report/repro_memory.h"
#include "replay/report/repro_tensors.h"

namespace nanquest {
namespace {

/// Like zlib's crc32: the programs compute it too.
std::uint32_t crc32(const at::Tensor& contiguous) {
  const auto* bytes = static_cast<const unsigned char*>(contiguous.const_data_ptr());
  std::uint32_t crc = 0xffffffffu;
  for (std::size_t i = 0; i < contiguous.nbytes(); ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

bool same_place(const TensorRow& a, const TensorRow& b) {
  return a.slot == b.slot && a.storage_offset == b.storage_offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

/// What is recorded of `made`, which the op has just returned: `row` is where it was recorded, if it was.
RecordedOutput recorded(const Case& c, TensorId row, const at::Tensor& made) {
  RecordedOutput out;
  const auto here = made.defined() ? stats_of(made, /*hash=*/true) : std::nullopt;
  if (!here) return {.looked_at = false};
  const StatsRow* then = row ? c.graph().stats(row) : nullptr;
  const StatsRow& s = then ? *then : *here;
  out.nan = static_cast<std::int64_t>(s.nan);
  out.inf = static_cast<std::int64_t>(s.pos_inf + s.neg_inf);
  out.bad_here = static_cast<std::int64_t>(here->non_finite());
  const bool comparable = s.has_hash && c.doc().hash_kind == HashKind::contents;
  const bool same =
      comparable ? s.hash == here->hash : s.nan == here->nan && s.non_finite() == here->non_finite();
  if (same) out.checksum = crc32(without_flags(made.resolve_conj().resolve_neg()).contiguous());
  return out;
}

/// The rows of the tensors of argument `position`, in order.
std::vector<TensorId> rows_of(const Case& c, OpId op, std::size_t position) {
  std::vector<TensorId> rows;
  for (const TraceGraph::Argument& a : c.graph().arguments(op))
    if (a.position == static_cast<std::int32_t>(position)) rows.push_back(a.row);
  return rows;
}

/// Runs the op on copies of its arguments and fills in its results and their places.
void run_alone(const Case& c, OpId op, RecordedCall& call) {
  const at::AutoGradMode as_a_program_has_it(true);
  const std::vector<c10::IValue> arguments = copies_of(call.arguments);
  c10::Stack stack(arguments.begin(), arguments.end());
  call.handle.callBoxed(stack);
  std::vector<at::Tensor> returned;
  for (const c10::IValue& value : stack)
    each_tensor(value, [&](const at::Tensor& t) { returned.push_back(t); });
  const IdRange<TensorRow> rows = c.graph().outputs(op);
  for (std::size_t k = 0; k < returned.size(); ++k) {
    const TensorId row =
        k < rows.size() ? TensorId{rows.front().row() + static_cast<std::int32_t>(k)} : TensorId{};
    call.outputs.push_back(is_scratch(c.graph().op(op).name, k) ? RecordedOutput{.looked_at = false}
                                                                : recorded(c, row, returned[k]));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!call.written[i]) continue;
    std::vector<at::Tensor> tensors;
    bool handed_back = true;
    each_tensor(arguments[i], [&](const at::Tensor& t) {
      tensors.push_back(t);
      handed_back = handed_back && std::any_of(returned.begin(), returned.end(),
                                               [&](const at::Tensor& r) { return r.is_same(t); });
    });
    if (handed_back) continue;
    call.results.push_back(i);
    const std::vector<TensorId> places = rows_of(c, op, i);
    for (std::size_t j = 0; j < tensors.size(); ++j) {
      TensorId row;
      for (const TensorId w : c.graph().written(op))
        if (w && j < places.size() && places[j] && same_place(get(c.doc(), w), get(c.doc(), places[j])))
          row = w;
      call.outputs.push_back(recorded(c, row, tensors[j]));
    }
  }
}

std::vector<at::ScalarType> wider_types(const RecordedCall& call) {
  const FormatsUsed formats(call.handle.schema(), call.arguments);
  if (!formats.one_up() || call.generator.defined()) return {};
  return formats.reduced() ? std::vector{at::kFloat, at::kDouble} : std::vector{at::kDouble};
}

Error cannot(const std::string& what, const std::string& why) {
  return {ErrorCode::unsupported, "repro: " + what + " can't be run alone: " + why,
          "nanquest-replay run goes through the whole step"};
}

}  // namespace

bool RecordedCall::bad() const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const RecordedOutput& o) { return o.nan + o.inf > 0; });
}

bool RecordedCall::bad_here() const {
  return std::any_of(outputs.begin(), outputs.end(), [](const RecordedOutput& o) { return o.bad_here > 0; });
}

Result<RecordedCall> record_call(const Case& c, std::int32_t op) {
  const OpRow& row = *c.row(op);
  const std::string name = SnapshotDoc::qualified_name(row);
  if (row.flags & kOpHostWrite)
    return cannot(name, "it stands for bytes that the program wrote into a tensor itself");
  if (row.flags & kOpOpaque)
    return cannot(name,
                  "what it was given is no plain memory (sparse, quantised, nested), or it does more than "
                  "compute; its outputs alone were recorded");
  if (row.flags & kOpFailed) return cannot(name, "it threw when it was recorded");
  const auto handle = c10::Dispatcher::singleton().findOp({row.name, row.overload});
  if (!handle) return cannot(name, "this LibTorch has no such operator");
  RecordedCall call{.handle = *handle, .written = traits_of(*handle).argument_written};
  std::string problem;
  bool ran = false;
  RunOptions options;
  options.scan = false;
  options.stop_after = op;
  options.edit.op_edit[op] = [&](std::vector<c10::IValue>& stack) {
    try {
      call.arguments = copies_of(stack);
      at::Generator generator = at::detail::getDefaultCPUGenerator();
      if (row.rng != kNone) call.generator = generator.get_state();
      run_alone(c, OpId{op}, call);
      if (row.rng != kNone) generator.set_state(call.generator);
      ran = true;
    } catch (const c10::Error& e) {
      problem = e.what_without_backtrace();
    }
    return false;
  };
  const RunResult run = c.run(options);
  if (!ran) return cannot(name, problem.empty() ? run.ops[static_cast<std::size_t>(op)].error : problem);
  call.wider = wider_types(call);
  return call;
}

std::optional<Differentiated> differentiated_by(const Case& c, std::int32_t op) {
  const OpRow& row = *c.row(op);
  const std::int32_t forward = row.phase == Phase::backward ? c.forward_of(op) : kNone;
  if (forward == kNone) return std::nullopt;
  auto call = record_call(c, forward);
  if (!call) return std::nullopt;
  Differentiated found{forward, std::move(call).value(), {}};
  const TraceGraph& graph = c.graph();
  std::set<OpId> node;
  for (const OpId other : graph.ops())
    if (other.row() == op || (row.sequence >= 0 && graph.op(other).phase == Phase::backward &&
                              graph.op(other).sequence == row.sequence && graph.op(other).node == row.node &&
                              graph.op(other).micro_batch == row.micro_batch))
      node.insert(other);
  const IdRange<TensorRow> outputs = graph.outputs(OpId{forward});
  found.gradients.resize(outputs.size());
  std::vector<bool> taken(outputs.size());
  RunOptions options;
  options.scan = false;
  for (const OpId reader : node)
    for (const TraceGraph::Argument& a : graph.arguments(reader)) {
      const OpId maker = a.row ? graph.producer(a.row, reader) : OpId{};
      if (!maker || node.count(maker) || graph.op(maker).phase != Phase::backward) continue;
      for (const TensorId made : outputs) {
        const auto k = static_cast<std::size_t>(made.row() - outputs.front().row());
        if (taken[k] || graph.tensor(made).sizes != graph.tensor(a.row).sizes) continue;
        taken[k] = true;
        options.stop_after = std::max(options.stop_after, reader.row());
        auto& edit = options.edit.op_edit[reader.row()];
        edit = [&found, k, position = a.position, before = edit](std::vector<c10::IValue>& stack) {
          if (before) before(stack);
          const c10::IValue& value = stack[static_cast<std::size_t>(position)];
          if (value.isTensor()) found.gradients[k] = value.toTensor().detach().clone();
          return false;
        };
        break;
      }
    }
  if (options.stop_after != kNone) c.run(options);
  return found;
}

}  // namespace nanquest
