#include "tests/snapshot/rich_doc.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include "probe/numerics/hash.h"

namespace nanquest::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

void fill_trace(SnapshotDoc& doc) {
  doc.slots = {{SlotOrigin::input, 64, DType::int64, "cpu", "batch.tokens", "batch/tokens"},
               {SlotOrigin::produced, 128, DType::float16, "cuda:0", "", ""},
               {SlotOrigin::loss_scale, 4, DType::float32, "cpu", "scale", "trace/slot_data/000002"}};
  doc.tensors = {{0, DType::int64, kTensorWrappedNumber | kTensorConj, 3, {2, 2}, {2, 1}, 0},
                 {1, DType::float16, kTensorRequiresGrad, 0, {4, 0, 3}, {0, 3, 1}, 1},
                 {kNone, DType::complex64, kTensorUndefined, 0, {}, {}, kNone},
                 {2, DType::float32, 0, 0, {}, {}, 2}};
  doc.args = {{ArgKind::tensor, 0, 0, 0, 0, ""},
              {ArgKind::list, kNone, 2, 0, 0, "int"},
              {ArgKind::integer, kNone, std::numeric_limits<std::int64_t>::min(), 0, 0, ""},
              {ArgKind::integer, kNone, -1, 0, 0, ""},
              {ArgKind::real, kNone, 0, -kInf, 0, ""},
              {ArgKind::complex, kNone, 0, 1.5, -2.25, ""},
              {ArgKind::string, kNone, 0, 0, 0, std::string("mean\0naïve ∞", 15)},
              {ArgKind::boolean, kNone, 1, 0, 0, ""},
              {ArgKind::none, kNone, 0, 0, 0, ""}};
  doc.written = {1, 3};
  OpRow mm{"aten::mm", "out", kOpSeeded | kOpFailed, Phase::forward, 1, 1, "", kNone, 17, 0, 4, 1, 1, 0, 1, 0,
           1,          ""};
  OpRow back{
      "aten::mul", "", kOpHostWrite, Phase::backward,         0, kNone, "MmBackward0", 0, -1, 4, 5, 2, 2, 1,
      1,           1,  kNone,        "trace/host_data/000001"};
  doc.ops = {mm, back};
  doc.rng_states = {"rng/000000", "rng/000001"};
  doc.stacks = {{"model.py:12 forward", "train.py:3 main"}, {}, {"train.py:3 main"}};
  doc.gradients = {3, kNone, 1};
  doc.loss = 3;
}

void fill_stats(SnapshotDoc& doc) {
  StatsRow a{10, 1, 2, 3, 4, 5, 6, 65504.0, 5.9604644775390625e-08, 1e300, 0x8000000000000001ull, true};
  StatsRow b{11, 0, 0, 0, 0, 0, -1, 0, 0, kInf, 0, false};
  doc.stats = {a, b, StatsRow{}};
}

void fill_history(SnapshotDoc& doc) {
  SeriesTable scalars{"scalars", {"step", "loss", "gate"}, {}};
  SeriesTable norms{"grad_norm", {"fc.weight", "fc.bias"}, {}};
  for (int i = 0; i < 5; ++i) {
    scalars.values.insert(scalars.values.end(),
                          {static_cast<double>(i), i == 4 ? kNaN : 1.0 / (i + 1), i == 4 ? 2.0 : 0.0});
    norms.values.insert(norms.values.end(), {0.5 * i, i == 3 ? kInf : -0.0});
    doc.history_samples.push_back({"file.txt:" + std::to_string(i), "file.txt:9"});
  }
  doc.history_samples[2].clear();
  doc.history = {scalars, norms, {"empty", {}, {}}};
}

TensorData pattern(DType dtype, std::vector<std::int64_t> shape) {
  const auto n = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  TensorData out{dtype, std::move(shape),
                 std::vector<std::byte>(static_cast<std::size_t>(n) * dtype_size(dtype))};
  unsigned x = 12345u + static_cast<unsigned>(dtype);
  for (std::byte& b : out.bytes) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<std::byte>(dtype == DType::boolean ? (x >> 30) & 1u : x >> 24);
  }
  return out;
}

}  // namespace

SnapshotDoc rich_doc() {
  SnapshotDoc doc;
  doc.step = 8'000'000'000;
  doc.rank = 3;
  doc.world_size = 8;
  doc.created_utc = "2025-01-02T03:04:05Z";
  doc.host = "höst";
  doc.writer = "nanquest 0.1.0";
  doc.gate = Gate::spike;
  doc.basis = "survivors";
  doc.loss_scale = 65536;
  doc.environment = {{"torch_version", "2.15.0"}, {"env.OMP_NUM_THREADS", ""}, {"empty", ""}};
  doc.config = {{"lr", "3e-4"}};
  doc.modules = {{"", "Model"}, {"blocks.3.attention", "CausalSelfAttention"}};
  doc.parameters = {{"fc.weight", "parameters/fc.weight", DType::bfloat16, {2, 3}, 1},
                    {"fc.bias", "", DType::float32, {0}, kNone}};
  doc.buffers = {{"bn.running_mean", "buffers/bn.running_mean", DType::float64, {2}, kNone}};
  doc.optimizer = {{"exp_avg of fc.weight", "optimizer/exp_avg of fc.weight", DType::float32, {2}, 2}};
  doc.batch = {{"tokens", "batch/tokens", DType::int64, {2, 4}, 0}};
  doc.sample_ids = {"a.txt:0", "a.txt:512"};
  doc.sample_texts = {"first\nline", std::string("\xff\xfe raw", 6)};
  doc.rng_data = "rng/start";
  fill_trace(doc);
  fill_stats(doc);
  fill_history(doc);
  doc.twin = {7'999'999'999, 1, {{0, kNone, "twin/data/000000"}, {kNone, 1, "twin/data/000001"}}};
  doc.culprit = {1, Phase::backward, "parameter", "mixed", 42, {0, 3, 5}, "fc.weight", {0, 1}, {1}};
  return doc;
}

TapeDoc rich_tape() {
  TapeDoc tape;
  tape.trace = rich_doc();
  // The file's own attributes are not part of the tape.
  tape.trace.created_utc.clear();
  tape.trace.host.clear();
  tape.trace.history.clear();
  tape.trace.history_samples.clear();
  tape.trace.slots[0].data = "tape/trace/slot_data/000000";
  tape.trace.ops[1].host_data = "tape/trace/host_data/000001";
  tape.steps = {{7'999'999'999, 1, 1, 0, 1, 3e-4, 2.5},
                {8'000'000'000, 2, kNone, kNone, kNone, -0.0, kNaN, 1.0, 1.5}};
  tape.reads = {{0, kInf, false}, {1, 1, true}};
  return tape;
}

std::vector<std::pair<std::string, TensorData>> rich_tensors() {
  std::vector<std::pair<std::string, TensorData>> out;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    out.emplace_back("parameters/all." + std::string(dtype_name(dtype)), pattern(dtype, {3, 5}));
  }
  out.emplace_back("buffers/scalar", pattern(DType::float32, {}));
  out.emplace_back("buffers/empty", pattern(DType::bfloat16, {4, 0, 2}));
  out.emplace_back("batch/tokens", pattern(DType::int64, {2, 4}));
  out.emplace_back("trace/slot_data/000002", pattern(DType::uint8, {1, 1, 2, 1, 3, 1, 1, 2}));
  out.emplace_back("top", pattern(DType::int8, {7}));
  out.emplace_back("optimizer/large", pattern(DType::float32, {20, 1000}));  // outside the sealed part
  out.emplace_back("twin/data/000000", pattern(DType::int64, {8}));
  out.emplace_back("twin/data/000001", pattern(DType::float16, {3}));
  out.emplace_back("regions/000003", pattern(DType::uint8, {11}));
  out.emplace_back("tape/trace/slot_data/000000", pattern(DType::int64, {5}));
  return out;
}

Status write_rich(const std::string& path, const std::string& beside) {
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  if (!writer) return writer.error();
  for (const auto& [name, t] : rich_tensors()) {
    Status s;
    if (!beside.empty() && name == kRichReference) {
      const std::string other = std::filesystem::path(path).parent_path() / beside;
      std::ofstream(other, std::ios::binary)
          << "eight..." << std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size())
          << "after";
      FileReference reference;
      reference.path = name;
      reference.dtype = t.dtype;
      reference.shape = t.shape;
      reference.file = "/models/rich/" + beside;
      reference.from_here = beside;
      reference.offset = 8;
      reference.file_bytes = 8 + t.bytes.size() + 5;
      reference.checksum = hash_bytes(t.bytes.data(), t.bytes.size());
      s = writer->write_reference(reference);
    } else {
      s = writer->write_tensor(name, {t.dtype, t.shape, t.bytes.data()});
    }
    if (!s) return s;
  }
  const TapeDoc tape = rich_tape();
  if (Status s = writer->write_doc(rich_doc(), &tape); !s) return s;
  return writer->commit();
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "nanquest-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

std::size_t TempDir::entries(const std::string& folder) const {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_ / folder), {}));
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace nanquest::testing
