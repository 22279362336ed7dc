// The trace of the fixture, op by op, through a small builder.
#include <algorithm>
#include <cmath>

#include "probe/numerics/format.h"
#include "tests/viewer/fixture.h"

namespace nanquest::viewer::testing {
namespace {

struct Value {
  std::int32_t slot = kNone;
  DType dtype = DType::float16;
  std::vector<std::int64_t> shape;
  double amax = 1;
  std::uint64_t nan = 0, inf = 0;
};

class Builder {
 public:
  explicit Builder(SnapshotDoc& doc) : doc_(doc) {}

  Value stored(SlotOrigin origin, const std::string& name, const std::string& data, DType dtype,
               std::vector<std::int64_t> shape, double amax) {
    Value v = fresh(dtype, std::move(shape), amax);
    Slot& slot = doc_.slots.back();
    slot.origin = origin;
    slot.name = name;
    slot.data = data;
    return v;
  }

  Value op(const std::string& name, Phase phase, const std::string& module, const std::vector<Value>& reads,
           DType dtype, std::vector<std::int64_t> shape, double amax, std::uint64_t nan = 0,
           std::uint64_t inf = 0, const std::string& node = "") {
    OpRow row;
    row.name = name;
    row.phase = phase;
    row.module = module_row(module);
    row.node = node;
    row.first_arg = static_cast<std::int32_t>(doc_.args.size());
    for (const Value& v : reads) {
      ArgRow arg;
      arg.kind = ArgKind::tensor;
      arg.tensor = use(v);
      doc_.args.push_back(arg);
    }
    row.arg_count = static_cast<std::int32_t>(reads.size());
    Value out = fresh(dtype, std::move(shape), amax);
    out.nan = nan;
    out.inf = inf;
    row.first_output = use(out);
    row.output_count = 1;
    row.first_written = static_cast<std::int32_t>(doc_.written.size());
    row.written_count = 1;
    doc_.written.push_back(row.first_output);
    doc_.ops.push_back(row);
    return out;
  }

  std::int32_t last() const { return static_cast<std::int32_t>(doc_.ops.size()) - 1; }

 private:
  Value fresh(DType dtype, std::vector<std::int64_t> shape, double amax) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    Slot slot;
    slot.bytes = static_cast<std::uint64_t>(n) * dtype_size(dtype);
    slot.dtype = dtype;
    doc_.slots.push_back(slot);
    return {static_cast<std::int32_t>(doc_.slots.size()) - 1, dtype, std::move(shape), amax, 0, 0};
  }

  std::int32_t use(const Value& v) {
    TensorRow row;
    row.slot = v.slot;
    row.dtype = v.dtype;
    row.sizes = v.shape;
    std::int64_t stride = 1;
    for (auto d = v.shape.rbegin(); d != v.shape.rend(); ++d) {
      row.strides.insert(row.strides.begin(), stride);
      stride *= *d;
    }
    StatsRow stats;
    stats.count = static_cast<std::uint64_t>(stride);
    stats.nan = v.nan;
    stats.pos_inf = v.inf;
    stats.first_bad = v.nan + v.inf > 0 ? 40 : -1;
    stats.amax = v.amax;
    stats.amin_nonzero = v.amax * 1e-6;
    row.stats = static_cast<std::int32_t>(doc_.stats.size());
    doc_.stats.push_back(stats);
    doc_.tensors.push_back(row);
    return static_cast<std::int32_t>(doc_.tensors.size()) - 1;
  }

  std::int32_t module_row(const std::string& path) {
    for (std::size_t i = 0; i < doc_.modules.size(); ++i)
      if (doc_.modules[i].path == path) return static_cast<std::int32_t>(i);
    doc_.modules.push_back({path, path.find("mlp") != std::string::npos ? "Mlp" : "Module"});
    return static_cast<std::int32_t>(doc_.modules.size()) - 1;
  }

  SnapshotDoc& doc_;
};

constexpr auto kFixtureHalf = DType::float16;
constexpr auto kFull = DType::float32;
constexpr auto kForward = Phase::forward;

/// One transformer block; returns the residual stream. `growth` is how large its values are.
Value block(Builder& b, int i, Value x, double growth, std::int32_t& culprit) {
  const std::string name = "blocks." + std::to_string(i), attention = name + ".attention",
                    mlp = name + ".mlp";
  const auto weight = [&](const std::string& of, std::vector<std::int64_t> shape) {
    return b.stored(SlotOrigin::parameter, of + ".weight", "parameters/" + of + ".weight", kFull,
                    std::move(shape), 0.4 + growth / 4000);
  };
  Value n1 =
      b.op("aten::native_layer_norm", kForward, name + ".norm1", {x}, kFull, {8, 128, 64}, 6 + growth / 100);
  Value h = b.op("aten::_to_copy", kForward, attention, {n1}, kFixtureHalf, {8, 128, 64}, n1.amax);
  Value w = b.op("aten::_to_copy", kForward, attention, {weight(attention + ".qkv", {192, 64})}, kFixtureHalf,
                 {192, 64}, 0.5);
  Value qkv = b.op("aten::mm", kForward, attention, {h, w}, kFixtureHalf, {1024, 192}, 30 + growth / 10);
  Value scores =
      b.op("aten::bmm", kForward, attention, {qkv, qkv}, kFixtureHalf, {32, 128, 128}, 200 + growth);
  Value p = b.op("aten::_softmax", kForward, attention, {scores}, kFixtureHalf, {32, 128, 128}, 1);
  Value mixed =
      b.op("aten::bmm", kForward, attention, {p, qkv}, kFixtureHalf, {32, 128, 16}, 25 + growth / 12);
  Value out = b.op("aten::mm", kForward, attention, {mixed, weight(attention + ".proj", {64, 64})},
                   kFixtureHalf, {1024, 64}, 40 + growth / 8);
  Value y = b.op("aten::add", kForward, name, {x, out}, kFull, {8, 128, 64}, x.amax + out.amax);
  Value n2 =
      b.op("aten::native_layer_norm", kForward, name + ".norm2", {y}, kFull, {8, 128, 64}, 7 + growth / 90);
  Value up = b.op("aten::mm", kForward, mlp, {n2, weight(mlp + ".up", {256, 64})}, kFixtureHalf, {1024, 256},
                  300 + growth * 4);
  Value act = b.op("aten::gelu", kForward, mlp, {up}, kFixtureHalf, {1024, 256}, up.amax);
  const bool bad = i == kBlocks - 1;
  Value down = b.op("aten::mm", kForward, mlp, {act, weight(mlp + ".down", {64, 256})}, kFixtureHalf,
                    {1024, 64}, bad ? 65472 : 500 + growth * 12, 0, bad ? 17 : 0);
  if (bad) culprit = b.last();
  return b.op("aten::add", kForward, name, {y, down}, kFull, {8, 128, 64}, y.amax + down.amax, 0, down.inf);
}

}  // namespace

SnapshotDoc fixture_doc() {
  SnapshotDoc doc;
  doc.step = kBadStep;
  doc.created_utc = "2025-01-02T03:04:05Z";
  doc.host = "bench";
  doc.writer = "nanquest fixture";
  doc.loss_scale = 8192;
  doc.environment = {{"torch_version", "2.15.0"}, {"num_threads", "2"}, {"cpu_capability", "AVX2"}};
  doc.config = {{"lr", "0.006"}, {"precision", "fp16"}};
  doc.modules = {{"", "Gpt"}};
  doc.sample_ids = {"book.txt:1024", "book.txt:2048", "notes.md:77",   "notes.md:4096",
                    "book.txt:0",    "book.txt:3072", "notes.md:1101", "notes.md:8192"};
  for (const std::string& id : doc.sample_ids)
    doc.sample_texts.push_back("A line of " + id + "\n\tand another.");
  Builder b(doc);
  Value tokens = b.stored(SlotOrigin::input, "batch.tokens", "batch/tokens", DType::int64, {8, 128}, 255);
  Value table = b.stored(SlotOrigin::parameter, "token_embedding.weight", "parameters/token_embedding.weight",
                         kFull, {256, 64}, 0.2);
  Value x = b.op("aten::embedding", kForward, "token_embedding", {table, tokens}, kFull, {8, 128, 64}, 0.2);
  std::int32_t culprit = kNone;
  const double growth[kBlocks] = {80, 300, 1100, 5200};
  for (int i = 0; i < kBlocks; ++i) x = block(b, i, x, growth[i], culprit);
  doc.culprit.lineage = {culprit, b.last()};
  Value n = b.op("aten::native_layer_norm", kForward, "norm", {x}, kFull, {8, 128, 64}, 0, 1088);
  Value head =
      b.stored(SlotOrigin::parameter, "head.weight", "parameters/head.weight", kFull, {256, 64}, 0.3);
  doc.culprit.lineage.push_back(b.last());
  Value logits = b.op("aten::mm", kForward, "head", {n, head}, kFixtureHalf, {1024, 256}, 0, 4352);
  doc.culprit.lineage.push_back(b.last());
  Value logp = b.op("aten::_log_softmax", kForward, "", {logits}, kFull, {1024, 256}, 0, 4352);
  doc.culprit.lineage.push_back(b.last());
  Value loss = b.op("aten::nll_loss_forward", kForward, "", {logp, tokens}, kFull, {}, 0, 1);
  doc.culprit.lineage.push_back(b.last());
  doc.loss = doc.ops.back().first_output;
  Value g = b.op("aten::nll_loss_backward", Phase::backward, "", {loss, logp}, kFull, {1024, 256}, 0, 262144,
                 0, "NllLossBackward0");
  g = b.op("aten::_log_softmax_backward_data", Phase::backward, "", {g, logp}, kFull, {1024, 256}, 0, 262144,
           0, "LogSoftmaxBackward0");
  Value gw =
      b.op("aten::mm", Phase::backward, "head", {g, n}, kFixtureHalf, {256, 64}, 0, 16384, 0, "MmBackward0");
  g = b.op("aten::mm", Phase::backward, "head", {g, head}, kFixtureHalf, {1024, 64}, 0, 65536, 0,
           "MmBackward0");
  doc.gradients = {doc.ops[doc.ops.size() - 2].first_output};
  doc.ops[static_cast<std::size_t>(culprit)].flags = kOpBirth | kOpBirthFiniteAbove;
  doc.stacks = {{"model/gpt.cpp:141 nanquest::trainer::Mlp::forward",
                 "model/gpt.cpp:188 nanquest::trainer::Block::forward"}};
  doc.ops[static_cast<std::size_t>(culprit)].stack = 0;
  doc.culprit.op = culprit;
  doc.culprit.value = "+inf";
  doc.culprit.count = 17;
  doc.culprit.first = {0, 40};
  return doc;
}

}  // namespace nanquest::viewer::testing
