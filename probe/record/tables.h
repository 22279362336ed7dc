/// StepTables: a recorded step as the tables of a snapshot.
///
///     StepTables tables(recorder, *recorder.find(17));
///     tables.build(names);                         // names of parameters, buffers, moments and batch
///     doc.loss = tables.describe(loss);            // with its hash: what a replay is compared with
///     doc.gradients.push_back(tables.describe(w.grad()));
///     tables.finish(names);                        // first values of all that has a name; culprit or proofs
///     write_snapshot(tables.recording, path);
///
/// Use on the thread that trains: bulk data in `recording` is not copied but refers to memory of the recorder
/// and of the program, and is valid only until either goes on (see own()).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "probe/record/file_references.h"
#include "probe/record/record.h"
#include "probe/record/recorder.h"

namespace nanquest {

/// Something that a step starts from, by name. It may have been freed since; its storage must be held weakly,
/// so that the address is not reused.
struct NamedMemory {
  std::string name;
  const c10::StorageImpl* storage = nullptr;  ///< null for what isn't plain memory
  at::Tensor tensor;                          ///< its view of that storage; undefined if unknown
};

/// What a step starts from.
struct StepNames {
  std::vector<NamedMemory> parameters, buffers, optimizer, batch, loss_scale;
  std::vector<NamedMemory> gradients = {};  ///< the parameters' values before the step, by the parameters' names
};

/// Names of arguments, from the schemas of this LibTorch (ArgumentName).
std::string argument_name_of(const OpRow& op, std::int32_t position);

/// Names of tensors that are alive.
std::vector<NamedMemory> named_memory(const NamedTensors& tensors);

class StepTables {
 public:
  StepTables(Recorder& recorder, record::Step& step);

  /// Fills the trace tables and the data of all values from outside.
  void build(const StepNames& names);

  /// A row with statistics and hash for a tensor as it is now; kNone if it isn't plain memory. Call after
  /// `build`.
  std::int32_t describe(const at::Tensor& tensor) { return add(recorder_.see(tensor)); }
  /// The same for a tensor as it was when it was copied.
  std::int32_t add(const SeenTensor& seen);
  /// Rows and data for everything that has a name, as it was when the step began, and the batch of the last
  /// healthy step if this step can be run on it. For a watched step: also finds the culprit, with stacks in
  /// words for it and for its forward op. For other steps: also statistics and hashes for what the step wrote
  /// last into memory that is alive (as it is now; for a step that is not the last one, as the next step
  /// found it), and stacks in words for all ops.
  void finish(const StepNames& names);

  /// First values of the whole storage of a tensor that the step read from outside, as a 1-D tensor of the
  /// type that was first read. Undefined if the step did not read it, or if they are lost. Does not need
  /// `build`.
  at::Tensor first_value(const at::Tensor& tensor) const;
  at::Tensor first_value(const c10::StorageImpl* storage) const;

  /// Call after `finish`: what is also in a file on this machine becomes a reference (file_references.h).
  void refer_to_files();

  /// Puts what ran in this step after its update before the ops of the step that followed it, whose tables
  /// are finished, as far as it made bad values there (lead.h). Call after `build`.
  void lead_to(StepTables& next);

  /// Makes `recording` independent of the program's memory. Its data keep `recorder`, which must be the
  /// recorder of this step.
  void own(const std::shared_ptr<const Recorder>& recorder);

  /// Call after `finish`, for a step that consists of several: its tape (tape_recording.h). Nothing is left.
  std::shared_ptr<TapeRecording> tape();

  const std::vector<std::shared_ptr<Stack>>& stacks() const { return stacks_; }

  Recording recording;

 private:
  void announce(const std::vector<NamedMemory>& group, SlotOrigin origin);
  void add_slots();
  void add_op(std::uint32_t index);
  void add_arguments(const record::OpRecord& record, OpRow& op);
  void add_outputs(const record::OpRecord& record, OpRow& op);
  void add_host_write(const record::HostWrite& write);
  std::int32_t add_tensor(record::Reader& reader);
  void add_nodes(std::uint32_t at, bool of_arguments);
  std::int32_t module_row(const ModuleName& module);
  std::int32_t add_generator(const record::GeneratorState& state);
  std::int32_t add_stats(const at::Tensor& tensor);
  /// The slot of a storage that possibly only `add` has seen.
  std::int32_t slot_of(const at::Tensor& tensor);
  void keep_first(const char* group, const std::vector<NamedMemory>& tensors, std::vector<NamedTensor>& rows);
  NamedTensor first_value_row(const std::string& path, const NamedMemory& named);
  at::Tensor first_values(const record::Step& step, std::uint32_t slot, bool& trusted) const;
  /// Bytes of a storage as the step left them; undefined if unknown.
  at::Tensor values_now(std::uint32_t slot) const;
  void hash_survivors();
  /// The last healthy step's batch, if this step can be run on it.
  void add_twin();
  void symbolise_culprit();
  void symbolise_all();

  Recorder& recorder_;
  record::Step& step_;
  struct Name {
    SlotOrigin origin;
    std::string name;
  };
  std::unordered_map<const c10::StorageImpl*, Name> names_;
  std::unordered_map<std::string, std::int32_t> modules_;
  std::unordered_map<std::string, int> paths_used_;
  record::Views views_;
  std::unordered_map<std::uint64_t, std::int32_t> forward_ops_;
  std::vector<std::int32_t> rows_;  // per op
  std::vector<at::Tensor> first_;   // per slot
  std::vector<std::shared_ptr<Stack>> stacks_;
  std::size_t next_host_write_ = 0, next_opaque_ = 0, next_node_ = 0;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> more_;  // storages that only `add` has seen
  std::unordered_set<const void*> programs_, recorders_;            // whose memory data refer to
};

}  // namespace nanquest
