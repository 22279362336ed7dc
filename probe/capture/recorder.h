/// TraceRecorder: fills the trace tables of a SnapshotDoc from what the observer sees.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/capture/record.h"
#include "probe/capture/slots.h"
#include "probe/capture/stacks.h"
#include "probe/observe/observer.h"
#include "probe/tensor/hidden_overflow.h"

namespace nanquest {

class TraceRecorder : public OpSink {
 public:
  /// `recording` outlives the recorder; its doc's trace tables are filled.
  TraceRecorder(Recording& recording, const RecordOptions& options);

  /// Copies a tensor the step starts from into the file's data and announces its storage by name.
  /// Returns its row for the doc. Call before the step.
  NamedTensor keep(const std::string& group, const std::string& name, const at::Tensor& tensor,
                   SlotOrigin origin);

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  void on_error(const char* what) override;

  /// A tensor-table row with statistics (without scan: and a hash) for a tensor as it is now; call after the
  /// step (loss, gradients).
  std::int32_t describe(const at::Tensor& tensor);

  /// Announces a tensor by name without copying it (lazy recording).
  void announce(const std::string& name, const at::Tensor& tensor, SlotOrigin origin);

  /// Slot numbers of the kept tensors, once the step has run.
  void link_slots(std::vector<NamedTensor>& rows, const NamedTensors& tensors) const;

  /// Lazy recording: copies every outside value that is still only referred to, and looks at what the step
  /// read of them. Call before the file is written or a culprit sought.
  void copy_outside();
  /// Lazy recording: looks at what the step read of outside values, without copying them.
  void look_at_outside();

  /// Lazy recording, after copy_outside(): a named tensor as it was when the step began, as a row and data of
  /// the file.
  NamedTensor keep_first(const std::string& group, const std::string& name, const at::Tensor& tensor);

  /// Values of the tensor's storage when the step read it first, as far as they are still there; undefined
  /// for what the step did not read or made itself.
  at::Tensor first_value(const at::Tensor& tensor) const;

  std::size_t op_count() const { return doc_.ops.size(); }
  /// Flags the births whose overflow later ops hid, by what became of it so far (OpFlag kOpHides…).
  void flag_hidden_overflows();
  /// Non-finite values among what ops from `first` on wrote, by the statistics taken so far.
  bool wrote_non_finite(std::size_t first, Phase phase) const;

  const std::vector<std::shared_ptr<Stack>>& stacks() const { return stacks_; }

 private:
  struct Frame;
  at::Tensor before_written(const at::Tensor& tensor);
  /// What the op reads, as it reads it: memory that it will write is copied.
  void keep_inputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> inputs, Frame& frame);
  std::int32_t slot_for_argument(const at::Tensor& tensor, bool written);
  /// What is to be known of a tensor's values. Their hash costs a walk in logical order: only what an op
  /// wrote needs it.
  enum class Look { nothing, values, values_and_hash };
  std::int32_t tensor_row(const at::Tensor& tensor, std::int32_t slot, Look look);
  std::int32_t stats_for(const at::Tensor& tensor, std::int32_t slot, Look look);
  /// Lazy recording: first values of an outside storage are kept anyway and can be looked at when somebody
  /// wants to know, which in a good step nobody does.
  bool looked_at_later(std::int32_t slot, Look look) const;
  /// Looks at the first values that row `row`, which was not looked at when it was read, says it saw.
  void look_at_first_values(std::int32_t row);
  void look_at_unseen();
  bool read_non_finite(const Frame& frame);
  /// Looks at many tensors of one op with all threads; stats_for finds what was seen until the next call.
  void look_ahead(std::vector<at::Tensor> tensors, Look look);
  void look_ahead_at_inputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> inputs);
  void look_ahead_at_outputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> outputs,
                             const std::vector<at::Tensor>& written);
  void save_outside(std::int32_t slot);
  /// Two tensors of one name must not share a place in the file.
  std::string free_path(const std::string& wanted);
  void add_host_write(const at::Tensor& tensor, std::int32_t slot);
  /// `tensor` was written by `op`; of a collective only by and by.
  void write(const OpTraits& traits, OpRow& op, std::int32_t index, const std::string& name,
             const at::Tensor& tensor, std::int32_t slot, std::int32_t row);
  void add_written(OpRow& op, const at::Tensor& tensor, std::int32_t slot, std::int32_t row);
  void fill_context(OpRow& op);
  /// Values that an op made which perhaps can't be run again: "trace/opaque/000017/0" for what it returned,
  /// "trace/opaque/000017/w2" for an entry of its written range that it did not return.
  void keep_value(OpRow& op, const std::string& path, const at::Tensor& tensor);
  /// The row's tensor if its values are others than when the row was made; undefined if they are the same, or
  /// if nobody looked at them then.
  at::Tensor rewritten(std::int32_t row);
  /// What a collective wrote into the slot is there now: its values are kept and looked at.
  void settle(std::int32_t slot);
  /// Memory shared with NumPy and others may be written behind the dispatcher.
  void watch_shared(const at::Tensor& tensor, std::int32_t slot);
  /// A tensor that is read shows which node made it: the only sign of nodes whose forward ran without
  /// gradients (autograd.Function).
  void link_maker(const at::Tensor& tensor, std::int32_t slot);
  void link_forward(OpRow& op, c10::ArrayRef<const c10::IValue> outputs, std::int32_t index);
  void judge_birth(const OpTraits& traits, Frame& frame, OpRow& op, const OpResults& made);
  std::int32_t module_row(std::string_view path, std::string_view type);
  std::int32_t save_generator(c10::ArrayRef<const c10::IValue> inputs);

  Recording& recording_;
  SnapshotDoc& doc_;
  RecordOptions options_;
  SlotTable slots_;
  std::mutex mutex_;
  std::map<std::string, std::int32_t, std::less<>> modules_;
  struct Made {
    std::int32_t op, module;
  };
  std::unordered_map<std::uint64_t, Made>
      forward_ops_;                             // thread and sequence number of a node -> who made it
  std::vector<std::shared_ptr<Stack>> stacks_;  // per op
  std::unordered_map<std::string, int> names_used_;
  int births_judged_ = 0;
  HiddenOverflows hidden_;
  std::vector<std::int32_t> unseen_;  // rows of first values that nobody has looked at yet
  std::unordered_map<const c10::TensorImpl*, StatsRow> ready_;  // of the op at hand
};

}  // namespace nanquest
