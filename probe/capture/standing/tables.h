/// StandingTables: a step of a StandingTrace as the tables of a snapshot.
///
///     StandingTables tables(trace, *trace.find(17));
///     tables.announce("fc.weight", w, SlotOrigin::parameter);
///     tables.build();
///     doc.loss = tables.describe(loss);            // with its hash: what a replay is compared with
///     doc.gradients.push_back(tables.describe(w.grad()));
///     doc.parameters.push_back(tables.keep_first("parameters", "fc.weight", w));
///     tables.hash_survivors();
///
/// On the thread that trains, between backward and the update: bulk data in `recording` is not copied
/// but refers to the memory of the trace and of the program, and is right only until either goes on.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/capture/record.h"
#include "probe/capture/slots.h"
#include "probe/capture/standing/standing.h"

namespace nanquest {

namespace standing {
/// Memory as a 1-D tensor of `type` (of bytes, where they don't fill elements), which keeps `keep` alive.
/// Copies nothing.
at::Tensor typed_bytes(const void* data, std::size_t bytes, at::ScalarType type, c10::Storage keep);
}  // namespace standing

class StandingTables {
 public:
  StandingTables(StandingTrace& trace, standing::Step& step);

  /// What a storage is called. Before `build`.
  void announce(const std::string& name, const at::Tensor& tensor, SlotOrigin origin);
  /// The same for memory that may have been freed since; somebody must hold it weakly.
  void announce(const std::string& name, const c10::StorageImpl* storage, SlotOrigin origin);
  /// Fills the trace tables and the data of all outside values.
  void build();

  /// A row with statistics and hash for a tensor as it is now. kNone for what isn't plain memory.
  std::int32_t describe(const at::Tensor& tensor);
  /// A named tensor as it was when the step began, as a row and data of the file.
  NamedTensor keep_first(const std::string& group, const std::string& name, const at::Tensor& tensor);
  /// The same for a tensor that lay in `storage` as `like` lies in its own.
  NamedTensor keep_first(const std::string& group, const std::string& name, const at::Tensor& like,
                         const c10::StorageImpl* storage);
  /// Statistics and hashes for what the step wrote last into memory that is alive: as it is now, and for a
  /// step that others followed as the next one found it.
  void hash_survivors();
  /// First values of the whole storage of a tensor that the step read from outside, 1-D and of the type that
  /// they were first read in; undefined if it didn't, or if they are lost.
  at::Tensor first_value(const at::Tensor& tensor) const;
  at::Tensor first_value(const c10::StorageImpl* storage) const;

  /// Makes `recording` independent of trace and program.
  void own();

  const std::vector<std::shared_ptr<Stack>>& stacks() const { return stacks_; }

  Recording recording;

 private:
  void add_slots();
  void add_op(std::uint32_t index);
  void add_arguments(const standing::OpRecord& record, OpRow& op);
  void add_outputs(const standing::OpRecord& record, OpRow& op);
  void add_host_write(const standing::HostWrite& write);
  std::int32_t add_tensor(const standing::Header& header, standing::Reader& reader);
  void add_nodes(std::uint32_t at, bool of_arguments);
  std::int32_t module_row(const ModuleName& module);
  at::Tensor first_values(const standing::Step& step, std::uint32_t slot, bool& trusted) const;
  /// Bytes of a storage as the step left them, undefined if nobody knows.
  at::Tensor values_now(std::uint32_t slot) const;
  std::int32_t add_generator(const standing::GeneratorState& state);
  std::int32_t add_stats(const at::Tensor& tensor);

  StandingTrace& trace_;
  standing::Step& step_;
  std::unordered_map<const c10::StorageImpl*, StorageName> names_;
  std::unordered_map<std::string, std::int32_t> modules_;
  std::unordered_map<std::string, int> paths_used_;
  std::unordered_map<std::uint64_t, std::int32_t> forward_ops_;
  std::vector<std::int32_t> rows_;  // per op
  std::vector<at::Tensor> first_;   // per slot
  std::vector<std::shared_ptr<Stack>> stacks_;
  std::size_t next_host_write_ = 0, next_opaque_ = 0, next_node_ = 0;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> more_;  // storages that only `describe` met
};

}  // namespace nanquest
