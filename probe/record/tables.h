/// StepTables: a recorded step as the tables of a snapshot.
///
///     StepTables tables(recorder, *recorder.find(17));
///     tables.build(names);                         // what parameters, buffers, moments and batch are called
///     doc.loss = tables.describe(loss);            // with its hash: what a replay is compared with
///     doc.gradients.push_back(tables.describe(w.grad()));
///     tables.finish(names);                        // first values of all that has a name; culprit or proofs
///     write_snapshot(tables.recording, path);
///
/// On the thread that trains: bulk data in `recording` is not copied but refers to the memory of the recorder
/// and of the program, and is right only until either goes on (see own()).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "probe/record/record.h"
#include "probe/record/recorder.h"

namespace nanquest {

/// Something that a step starts from, by its name. It may have been freed since: somebody must hold its
/// storage weakly, so that the address is no other's.
struct NamedMemory {
  std::string name;
  const c10::StorageImpl* storage = nullptr;  ///< null for what isn't plain memory
  at::Tensor tensor;                          ///< how it lies in that storage; undefined if nobody knows
};

/// What a step starts from.
struct StepNames {
  std::vector<NamedMemory> parameters, buffers, optimizer, batch, loss_scale;
  std::vector<NamedMemory> gradients;  ///< that the parameters had before the step, by the parameters' names
};

/// Names of arguments, as the schemas of this LibTorch have them (ArgumentName).
std::string argument_name_of(const OpRow& op, std::int32_t position);

/// Names of living tensors.
std::vector<NamedMemory> named_memory(const NamedTensors& tensors);

namespace record {
class TwinBatch;
struct TwinMatch;
}  // namespace record

class StepTables {
 public:
  StepTables(Recorder& recorder, record::Step& step);

  /// Fills the trace tables and the data of all outside values.
  void build(const StepNames& names);

  /// A row with statistics and hash for a tensor as it is now; kNone for what isn't plain memory. After
  /// `build`.
  std::int32_t describe(const at::Tensor& tensor) { return add(recorder_.see(tensor)); }
  /// The same for a tensor as it was when somebody looked.
  std::int32_t add(const SeenTensor& seen);
  /// Rows and data for everything that has a name, as it was when the step began, and the batch of the last
  /// healthy step, where this one can be run on it. Then, of a watched step:
  /// finds the culprit, with words for the stacks of it and of its forward op. Of others: statistics and
  /// hashes for what the step wrote last into memory that is alive (as it is now, and for a step that others
  /// followed as the next one found it), and words for the stacks of all ops.
  void finish(const StepNames& names);

  /// First values of the whole storage of a tensor that the step read from outside, 1-D and of the type that
  /// they were first read in; undefined if it didn't, or if they are lost. Needs no `build`.
  at::Tensor first_value(const at::Tensor& tensor) const;
  at::Tensor first_value(const c10::StorageImpl* storage) const;

  /// After `finish`: what is read only and is, byte for byte, in a file that its memory was mapped from
  /// becomes a reference to that file (Recording::references) in place of data. Reads those bytes once.
  void refer_to_files();

  /// Makes `recording` independent of the program's memory; its data keep `recorder`, whose step this is.
  void own(const std::shared_ptr<const Recorder>& recorder);

  /// After `finish`, of a step that is many (Recorder::taped): the tables with what stands beside their ops,
  /// whose values then lie under kTapePrefix. They refer to the step's memory.
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
  /// The slot of a storage that perhaps only `add` met.
  std::int32_t slot_of(const at::Tensor& tensor);
  void keep_first(const char* group, const std::vector<NamedMemory>& tensors, std::vector<NamedTensor>& rows);
  NamedTensor first_value_row(const std::string& path, const NamedMemory& named);
  at::Tensor first_values(const record::Step& step, std::uint32_t slot, bool& trusted) const;
  /// Bytes of a storage as the step left them, undefined if nobody knows.
  at::Tensor values_now(std::uint32_t slot) const;
  void hash_survivors();
  /// The last healthy step's batch, if every value that this step reads from outside has its like in it.
  void add_twin();
  bool add_twin(const record::TwinBatch& twin);
  /// Whether loss and gradients are made by the first `ops` ops.
  bool covers_harm(std::uint32_t ops) const;
  /// False if nobody knows what the twin read in the slot's place; `value`: its bytes, undefined if there is
  /// nothing to put there.
  bool twin_of_slot(const record::TwinBatch& twin, const record::TwinMatch& match, std::uint32_t slot,
                    at::Tensor& value) const;
  void symbolise_culprit();
  void symbolise_all();

  /// The memory that a tensor of the file was taken from.
  struct FileSource {
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;  ///< in bytes, from the storage's first
  };

  Recorder& recorder_;
  record::Step& step_;
  struct Name {
    SlotOrigin origin;
    std::string name;
  };
  std::unordered_map<const c10::StorageImpl*, Name> names_;
  std::unordered_map<std::string, std::int32_t> modules_;
  std::unordered_map<std::string, int> paths_used_;
  std::map<std::string, FileSource> views_;  ///< of named tensors that are parts of a storage, by path
  std::unordered_map<std::uint64_t, std::int32_t> forward_ops_;
  std::vector<std::int32_t> rows_;  // per op
  std::vector<at::Tensor> first_;   // per slot
  std::vector<std::shared_ptr<Stack>> stacks_;
  std::size_t next_host_write_ = 0, next_opaque_ = 0, next_node_ = 0;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> more_;  // storages that only `add` met
  std::unordered_set<const void*> programs_, recorders_;            // whose memory data refer to
};

/// The recorder's tape up to now; `tables` makes those of its one long step, as far as StepTables::finish.
/// Null where there is none, and where it can't be put together: `complaint` is a sentence about that, for it
/// goes into the file of a step, which is worth more than those before it. `held` keeps what its values are.
/// With `embed_weights` none of them is left in another file.
/// Never throws.
std::shared_ptr<TapeRecording> tape_so_far(Recorder& recorder, std::unique_ptr<record::Step>& held,
                                           const std::function<StepTables(record::Step&)>& tables,
                                           bool embed_weights, std::string& complaint);

}  // namespace nanquest
