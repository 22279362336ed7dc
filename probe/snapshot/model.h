/// The snapshot, in memory: plain tables, no torch and no HDF5.
///
/// `probe/record` fills a SnapshotDoc, `SnapshotWriter` stores it, `SnapshotReader` returns it, `replay` and
/// `viewer` read it. Tensors are not in it: the doc refers to them by path
/// ("parameters/blocks.0.attn.qkv.weight", "trace/slot_data/000017") and the reader loads them on demand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/base/dtype.h"

namespace nanquest {

inline constexpr std::int32_t kNone = -1;  ///< "no such row" in every index column

/// Part of the optimizer step in which an op ran.
enum class Phase : std::uint8_t { input = 0, forward = 1, backward = 2, optimizer = 3 };

/// Origin of a slot's first bytes.
enum class SlotOrigin : std::uint8_t {
  produced = 0,  ///< made by an op of this trace; no bytes stored
  input = 1,     ///< the batch
  parameter = 2,
  buffer = 3,
  optimizer_state = 4,
  external = 5,  ///< read from outside, none of the above (constants, caches)
  gradient = 6,  ///< a .grad that existed before the step
  loss_scale = 7,
};

/// One storage of the trace. Never a pointer: those are recycled.
struct Slot {
  SlotOrigin origin = SlotOrigin::produced;
  std::uint64_t bytes = 0;     ///< size of the storage
  DType dtype = DType::uint8;  ///< of the first tensor that used it
  std::string device = "cpu";
  std::string name;  ///< "blocks.0.attn.qkv.weight", "batch.tokens", "exp_avg of …"; empty if unknown
  std::string data;  ///< path of the tensor that holds its bytes at first use; empty if produced here
};

/// Flags of a TensorRow.
enum TensorFlag : std::uint32_t {
  kTensorConj = 1u << 0,
  kTensorNeg = 1u << 1,
  kTensorWrappedNumber = 1u << 2,  ///< a Python/C++ number: takes no part in type promotion
  kTensorRequiresGrad = 1u << 3,
  kTensorUndefined = 1u << 4,
  kTensorOpaque = 1u << 5,  ///< not strided memory (sparse, nested, quantised): can't be rebuilt
};

/// One use of a tensor: as an argument of an op, or as an output.
struct TensorRow {
  std::int32_t slot = kNone;
  DType dtype = DType::float32;
  std::uint32_t flags = 0;
  std::int64_t storage_offset = 0;  ///< in elements
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  ///< in elements
  std::int32_t stats =
      kNone;  ///< row of SnapshotDoc::stats: its values when read (arguments) or just after writing (outputs)
};

/// How the hashes of the statistics were made (probe/numerics/scan.h).
enum class HashKind : std::uint8_t {
  contents,  ///< hash_contents of the logical contiguous contents
  whole,     ///< hash_bytes of them: files of format 1
};

/// Result of a scan of one tensor at one moment (mirror of ScanResult).
struct StatsRow {
  std::uint64_t count = 0, nan = 0, pos_inf = 0, neg_inf = 0, zero = 0, subnormal = 0;
  std::int64_t first_bad = -1;
  double amax = 0, amin_nonzero = 0, sum_squares = 0;
  std::uint64_t hash = 0;  ///< of the logical contiguous contents (HashKind)
  bool has_hash = false;

  std::uint64_t non_finite() const { return nan + pos_inf + neg_inf; }
};

/// Kinds of an argument token. A list or tuple is a `list` token followed by `length` values.
enum class ArgKind : std::uint8_t {
  none = 0,
  tensor = 1,
  integer = 2,
  real = 3,
  boolean = 4,
  string = 5,
  complex = 6,
  list = 7,       ///< `integer` = length, `text` = element type ("int", "float", "bool", "Tensor", "Tensor?",
                  ///< "Scalar", "str" …)
  device = 8,     ///< `text`
  generator = 9,  ///< default generator of a device, `text` = device ("" = None passed)
  opaque = 10,    ///< something that can't be rebuilt, `text` = its type
};
// ScalarType, Layout, MemoryFormat and similar types are IValue ints: they are stored as `integer`, and the
// schema says which type it is.

/// One token of the flattened (pre-order) argument list.
struct ArgRow {
  ArgKind kind = ArgKind::none;
  std::int32_t tensor = kNone;  ///< row of SnapshotDoc::tensors
  std::int64_t integer = 0;     ///< also bool
  double real = 0;
  double imaginary = 0;
  std::string text;
};

/// Flags of an OpRow.
enum OpFlag : std::uint32_t {
  kOpSeeded = 1u << 0,         ///< draws random numbers
  kOpUninitialised = 1u << 1,  ///< its outputs are garbage until written (empty, new_empty, resize_)
  kOpHostWrite = 1u << 2,  ///< pseudo-op: bytes that the host wrote without the dispatcher; first output =
                           ///< the slot, `host_data` = the bytes
  kOpOpaque = 1u << 3,     ///< can't be executed again: outputs are stored and substituted
  kOpRecompute = 1u << 4,  ///< forward op that gradient checkpointing ran again
  kOpViewOnly = 1u << 5,   ///< outputs alias inputs and nothing was written
  kOpFailed = 1u << 6,     ///< it threw
  kOpBirth = 1u << 7,      ///< made non-finite values out of finite inputs
  kOpBirthFiniteAbove =
      1u
      << 8,  ///< a birth that is finite when computed one precision up from the same inputs: range overflow
  kOpBirthStays = 1u << 9,    ///< a birth that is non-finite one precision up as well: a singular point or an
                              ///< intended infinity
  kOpHidesDamage = 1u << 10,  ///< a range overflow because of which a finite value came out wrong
  kOpHidesNothing =
      1u << 11,  ///< a range overflow that was followed to its end: no finite value came out differently
};

/// One frontier op, in the order of execution.
struct OpRow {
  std::string name;      ///< "aten::mm" without overload
  std::string overload;  ///< "" or "out", "Tensor", …
  std::uint32_t flags = 0;
  Phase phase = Phase::forward;
  std::int32_t micro_batch = 0;  ///< of accumulated gradients; for a pipeline see probe/trace/placement.h
  std::int32_t module = kNone;   ///< row of SnapshotDoc::modules
  std::string node;  ///< backward node ("SoftmaxBackward0"), "" outside; "accumulation after X" between nodes
  std::int32_t forward_op = kNone;  ///< for a backward op: the forward op that it differentiates
  std::int64_t sequence =
      -1;  ///< autograd sequence number of the node made by (forward) or run by (backward) this op
  std::int32_t first_arg = 0, arg_count = 0;        ///< range of SnapshotDoc::args
  std::int32_t first_output = 0, output_count = 0;  ///< range of SnapshotDoc::tensors: returned tensors, then
                                                    ///< written arguments of void ops
  std::int32_t first_written = 0,
               written_count = 0;  ///< range of SnapshotDoc::written: tensor rows whose memory this op wrote
                                   ///< (outputs that are not views, mutable arguments)
  std::int32_t rng = kNone;        ///< row of SnapshotDoc::rng_states (generator before the op)
  std::int32_t stack = kNone;      ///< row of SnapshotDoc::stacks
  std::string host_data;           ///< path of the bytes of a host write or of an opaque op's first output
};

/// A module's path and type.
struct ModuleRow {
  std::string path;  ///< "blocks.3.attention"; "" is the root
  std::string type;  ///< "CausalSelfAttention"
};

/// A named tensor with its values at the start of the step.
struct NamedTensor {
  std::string name;
  std::string data;  ///< path in the file
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::int32_t slot = kNone;  ///< slot of its storage in the trace, if the trace touched it
};

/// One column of numbers per item and step; rows are the last steps, oldest first.
struct SeriesTable {
  std::string name;                  ///< "scalars", "grad_norm", "weight_norm", "update_ratio", "amax"
  std::vector<std::string> columns;  ///< scalars: "step","loss","lr","scale","gate",…; otherwise layer names
  std::vector<double> values;        ///< row-major, size = rows × columns; NaN and Inf are kept as they are
  std::size_t rows() const { return columns.empty() ? 0 : values.size() / columns.size(); }
};

/// Answers of the gate, as stored in the "gate" column.
enum class Gate : std::uint8_t { ok = 0, scale_overflow = 1, non_finite = 2, spike = 3 };

/// The origin of the damage, as the probe saw it (replay finds the cause).
struct Culprit {
  std::int32_t op = kNone;  ///< row of ops; kNone if the bad value came from outside
  Phase phase = Phase::forward;
  /// "op", "input", "parameter", "buffer", "optimizer_state", "gradient" or "loss_scale".
  std::string origin = "op";
  std::string value;  ///< "nan", "+inf", "-inf", "mixed", "silent"
  std::uint64_t count = 0;
  std::vector<std::int64_t> first;       ///< index of the first bad element
  std::string tensor_name;               ///< for a bad input, weight, buffer or state
  std::vector<std::int32_t> lineage;     ///< ops from culprit to loss / gradient / weight, in order
  std::vector<std::int32_t> suppressed;  ///< births that were judged intended infinities
};

/// A value that the last healthy step read from outside, at the place where this step reads one.
struct TwinValue {
  std::int32_t slot = kNone;  ///< of this step, whose first bytes it replaces; or
  std::int32_t op = kNone;    ///< the host write of this step whose bytes it replaces
  std::string data;           ///< path of the tensor with these bytes: the same number, of the same type
};

/// The last healthy step, for running this step on it: the same ops at the same places, with the batch of
/// that step (targets, masks and everything else that came from outside) and the weights, states and numbers
/// of this one. Values that are not listed had the same bytes in both steps.
struct Twin {
  std::int64_t step = -1;  ///< its number; below 0: the file holds none
  std::int32_t ops = 0;    ///< number of ops, from the first, that are equal in both steps
  std::vector<TwinValue> values;
};

/// All of a snapshot except the tensors.
struct SnapshotDoc {
  std::int64_t step = 0;
  std::int32_t rank = 0, world_size = 1;
  std::string created_utc, host, writer;
  Gate gate = Gate::non_finite;
  std::string basis = "every_output";  ///< or "survivors"
  std::int32_t loss = kNone;           ///< tensor row that is the loss
  double loss_scale = 1;
  std::vector<std::int32_t> gradients;  ///< tensor rows: final .grad of each parameter (kNone if none)

  std::map<std::string, std::string>
      environment;  ///< "torch_version", "num_threads", "cpu_capability", "env.OMP_NUM_THREADS", …
  std::map<std::string, std::string> config;  ///< the run's settings, flat
  std::vector<SeriesTable> history;
  std::vector<std::vector<std::string>> history_samples;  ///< per history row: sample ids
  std::vector<ModuleRow> modules;
  std::vector<NamedTensor> parameters, buffers, optimizer, batch;
  std::vector<std::string> sample_ids;    ///< of this step's batch
  std::vector<std::string> sample_texts;  ///< empty, or one per sample
  std::string rng_data;  ///< path of the generator state at the start of the step ("" if none)

  std::vector<Slot> slots;
  std::vector<TensorRow> tensors;
  std::vector<ArgRow> args;
  std::vector<std::int32_t> written;
  std::vector<OpRow> ops;
  std::vector<StatsRow> stats;
  HashKind hash_kind = HashKind::contents;       ///< of `stats`; only `contents` can be written
  std::vector<std::string> rng_states;           ///< paths of generator states, row = OpRow::rng
  std::vector<std::vector<std::string>> stacks;  ///< frames, innermost first: "file:line function"
  Culprit culprit;
  Twin twin;

  /// "aten::mm" or "aten::add.Tensor": name with overload.
  static std::string qualified_name(const OpRow& op) {
    return op.overload.empty() ? op.name : op.name + "." + op.overload;
  }
};

}  // namespace nanquest
