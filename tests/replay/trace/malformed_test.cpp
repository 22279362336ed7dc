// Docs that lie: every op of them fails with a sentence or runs within its memory; nothing crashes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

RunResult run_changed(const Recording& recording, const std::function<void(SnapshotDoc&)>& change) {
  SnapshotDoc doc = recording.doc;
  change(doc);
  auto replayer = Replayer::from_memory(std::move(doc), {recording.data.begin(), recording.data.end()});
  if (!replayer) {
    ADD_FAILURE() << replayer.error().text();
    return {};
  }
  return replayer->run({});
}

std::size_t op_named(const SnapshotDoc& doc, const std::string& name) {
  for (std::size_t i = 0; i < doc.ops.size(); ++i)
    if (doc.ops[i].name == name) return i;
  ADD_FAILURE() << "no " << name;
  return 0;
}

class Malformed : public ::testing::Test {
 protected:
  const Recording recording = record(program("mlp").make(1, at::kFloat));
  std::string error_of(const std::string& op, const std::function<void(SnapshotDoc&, OpRow&)>& change) {
    const std::size_t index = op_named(recording.doc, op);
    const RunResult run = run_changed(recording, [&](SnapshotDoc& doc) { change(doc, doc.ops[index]); });
    EXPECT_GE(run.failed, 1);
    EXPECT_FALSE(run.finite());
    return run.ops.at(index).error;
  }
};

TEST_F(Malformed, UnknownOperator) {
  const std::string error =
      error_of("aten::gelu", [](SnapshotDoc&, OpRow& op) { op.name = "aten::no_such_op"; });
  EXPECT_NE(error.find("aten::no_such_op: no such operator"), std::string::npos) << error;
}

TEST_F(Malformed, LaterOpsSayWhatIsMissing) {
  const std::size_t gelu = op_named(recording.doc, "aten::gelu");
  const RunResult run =
      run_changed(recording, [&](SnapshotDoc& doc) { doc.ops[gelu].name = "aten::no_such_op"; });
  EXPECT_GT(run.failed, 1);
  bool said = false;
  for (std::size_t i = gelu + 1; i < run.ops.size(); ++i)
    said = said || run.ops[i].error.find("was never produced") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST_F(Malformed, OperatorsThatReachOutside) {
  const std::string error =
      error_of("aten::gelu", [](SnapshotDoc&, OpRow& op) { op.name = "aten::from_file"; });
  EXPECT_NE(error.find("never replayed"), std::string::npos) << error;
}

TEST_F(Malformed, WrongKindOfArgument) {
  const std::string error = error_of("aten::gelu", [](SnapshotDoc& doc, OpRow& op) {
    doc.args[static_cast<std::size_t>(op.first_arg)].kind = ArgKind::integer;
  });
  EXPECT_NE(error.find("argument self: a tensor was expected"), std::string::npos) << error;
}

TEST_F(Malformed, TooFewArguments) {
  const std::string error = error_of("aten::mm", [](SnapshotDoc&, OpRow& op) { op.arg_count = 1; });
  EXPECT_NE(error.find("end too early"), std::string::npos) << error;
}

TEST_F(Malformed, TensorBeyondItsStorage) {
  const std::string error = error_of("aten::gelu", [](SnapshotDoc& doc, OpRow& op) {
    doc.tensors[static_cast<std::size_t>(doc.args[static_cast<std::size_t>(op.first_arg)].tensor)]
        .storage_offset = 1;
  });
  EXPECT_NE(error.find("beyond the end"), std::string::npos) << error;
}

TEST_F(Malformed, AbsurdSizes) {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 62, std::int64_t{1} << 40}) {
    const std::string error = error_of("aten::gelu", [&](SnapshotDoc& doc, OpRow& op) {
      TensorRow& row =
          doc.tensors[static_cast<std::size_t>(doc.args[static_cast<std::size_t>(op.first_arg)].tensor)];
      row.sizes.assign(row.sizes.size(), size);
    });
    EXPECT_NE(error, "");
  }
}

TEST_F(Malformed, MissingBytes) {
  auto replayer = Replayer::from_memory(recording.doc, {});
  ASSERT_TRUE(replayer.ok());
  const RunResult run = replayer->run({});
  EXPECT_GT(run.failed, 0);
  bool said = false;
  for (const OpOutcome& op : run.ops)
    said = said || op.error.find("is not among the given tensors") != std::string::npos;
  EXPECT_TRUE(said);
  EXPECT_FALSE(verify(*replayer).bit_exact);
}

TEST_F(Malformed, FewerBytesThanTheSlotHas) {
  std::map<std::string, at::Tensor> data(recording.data.begin(), recording.data.end());
  data["parameters/up.weight"] = at::zeros({3});
  auto replayer = Replayer::from_memory(recording.doc, data);
  ASSERT_TRUE(replayer.ok());
  EXPECT_GT(replayer->run({}).failed, 0);
}

TEST_F(Malformed, AMissingFileIsABadFile) {
  const auto replayer = Replayer::open("/no/such/file.h5");
  ASSERT_FALSE(replayer.ok());
  EXPECT_EQ(replayer.error().code, ErrorCode::bad_file);
}

/// One random change in one random row of one random table.
void damage(SnapshotDoc& doc, std::mt19937& random) {
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const auto number = [&]() -> std::int64_t {
    constexpr std::int64_t values[] = {
        -1, 0, 1, 2, 7, 1000, 1 << 20, std::int64_t{1} << 50, std::int64_t{1} << 62};
    return values[pick(9)];
  };
  const auto small = [&] { return static_cast<std::int32_t>(number() & 0x7fffffff) * (pick(4) ? 1 : -1); };
  OpRow& op = doc.ops[pick(doc.ops.size())];
  TensorRow& tensor = doc.tensors[pick(doc.tensors.size())];
  ArgRow& arg = doc.args[pick(doc.args.size())];
  Slot& slot = doc.slots[pick(doc.slots.size())];
  switch (pick(16)) {
    case 0:
      op.first_arg = small();
      break;
    case 1:
      op.arg_count = small();
      break;
    case 2:
      op.first_output = small();
      break;
    case 3:
      op.output_count = small();
      break;
    case 4:
      op.first_written = small();
      break;
    case 5:
      op.rng = small();
      break;
    case 6:
      op.flags ^= 1u << pick(8);
      break;
    case 7:
      op.name = doc.ops[pick(doc.ops.size())].name;
      break;
    case 8:
      tensor.slot = small();
      break;
    case 9:
      tensor.dtype = static_cast<DType>(pick(kDTypeCount));
      break;
    case 10:
      tensor.storage_offset = number();
      break;
    case 11:
      if (!tensor.sizes.empty()) tensor.sizes[pick(tensor.sizes.size())] = number();
      break;
    case 12:
      if (!tensor.strides.empty()) tensor.strides[pick(tensor.strides.size())] = number();
      break;
    case 13:
      arg.kind = static_cast<ArgKind>(pick(11));
      break;
    case 14:
      arg.tensor = small();
      break;
    default:
      slot.bytes = static_cast<std::uint64_t>(number());
      break;
  }
}

TEST(MalformedAtRandom, NothingCrashes) {
  std::mt19937 random(20260);
  int failed = 0;
  for (const char* name : {"attention", "in_place", "foreach", "numbers"}) {
    const Recording recording = record(program(name).make(2, at::kFloat));
    for (int i = 0; i < 60; ++i) {
      SnapshotDoc doc = recording.doc;
      for (int k = 0; k <= i % 3; ++k) damage(doc, random);
      auto replayer = Replayer::from_memory(std::move(doc), {recording.data.begin(), recording.data.end()});
      ASSERT_TRUE(replayer.ok());
      failed += replayer->run({.precision = i % 2 ? Precision::fp64 : Precision::as_recorded}).failed > 0;
    }
  }
  EXPECT_GT(failed, 60);  // most damage is noticed
}

}  // namespace
}  // namespace nanquest::testing
