// Replaying a recorded step gives back every bit of it, and leaves the process as it was.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "probe/numerics/scan.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

class EveryProgram : public ::testing::TestWithParam<Program> {};

std::string describe_mismatch(const Replayer& replayer, const VerifyResult& result) {
  if (result.first_mismatch == kNone) return "no mismatch";
  return "first mismatch: op " + std::to_string(result.first_mismatch) + " " +
         SnapshotDoc::qualified_name(replayer.doc().ops[static_cast<std::size_t>(result.first_mismatch)]);
}

std::string first_error(const Replayer& replayer) {
  RunOptions options;
  options.scan = false;
  const RunResult run = replayer.run(options);
  for (std::size_t i = 0; i < run.ops.size(); ++i)
    if (!run.ops[i].error.empty())
      return SnapshotDoc::qualified_name(replayer.doc().ops[i]) + ": " + run.ops[i].error;
  return "no error";
}

TEST_P(EveryProgram, EveryOutputComesBackBitForBit) {
  for (int seed = 0; seed < 3; ++seed) {
    const Step step = GetParam().make(seed, at::kFloat);
    const Recording recording = record(step);
    const Replayer replayer = replayer_of(recording);
    const VerifyResult result = verify(replayer);
    EXPECT_TRUE(result.bit_exact) << describe_mismatch(replayer, result) << "; " << first_error(replayer);
    EXPECT_EQ(result.failed_ops, 0);
    EXPECT_EQ(result.opaque_ops, 0);
    EXPECT_GT(result.outputs_compared, 10);
    EXPECT_EQ(result.basis, "every_output");
    EXPECT_TRUE(result.differences.empty()) << result.differences.front();
    // The loss is compared with the program's own, not with what the recorder wrote down.
    EXPECT_EQ(replayer.run({}).loss, recording.loss.to(at::kDouble).item<double>());
  }
}

TEST_P(EveryProgram, AFileReplaysLikeTheMemory) {
  const Recording recording = record(GetParam().make(11, at::kFloat));
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("nanquest_replay_" + GetParam().name + std::to_string(::getpid()) + ".h5"))
                               .string();
  const Status written = write_snapshot(recording, path);
  ASSERT_TRUE(written.ok()) << written.error().text();
  {
    auto replayer = Replayer::open(path);
    ASSERT_TRUE(replayer.ok()) << replayer.error().text();
    EXPECT_TRUE(replayer->has_file());
    const VerifyResult result = verify(*replayer);
    EXPECT_TRUE(result.bit_exact) << describe_mismatch(*replayer, result) << "; " << first_error(*replayer);
    EXPECT_EQ(result.outputs_compared, verify(replayer_of(recording)).outputs_compared);
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Replay, EveryProgram, ::testing::ValuesIn(programs()),
                         [](const auto& each) { return each.param.name; });

TEST(Verify, OneFlippedBitIsFoundAtTheFirstOpThatReadsIt) {
  const Recording recording = record(program("mlp").make(1, at::kFloat));
  std::map<std::string, at::Tensor> data(recording.data.begin(), recording.data.end());
  at::Tensor changed = data.at("parameters/down.weight").clone();
  changed.view(at::kInt).view({-1})[3].bitwise_xor_(1 << 18);  // the last bit would drown in the sum
  data["parameters/down.weight"] = changed;
  const Replayer replayer = std::move(Replayer::from_memory(recording.doc, data)).value();
  const VerifyResult result = verify(replayer);
  EXPECT_FALSE(result.bit_exact);
  EXPECT_GT(result.mismatched, 0);
  ASSERT_NE(result.first_mismatch, kNone);
  EXPECT_EQ(replayer.doc().ops[static_cast<std::size_t>(result.first_mismatch)].name, "aten::mm");
}

// Files of format 1 hold the hash of a tensor's contents as a whole: they are held to that.
TEST(Verify, HashesOfFormat1AreComparedAsTheyWereMade) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({600, 500});  // more than a part of today's hash
  at::Tensor twice, turned;
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [&] {
    twice = x * 2;
    turned = twice.t() + 1;  // lies in memory as `twice` does
    return turned.mean();
  };
  Recording recording = record(step);
  ASSERT_FALSE(turned.is_contiguous());
  EXPECT_TRUE(verify(replayer_of(recording)).bit_exact);
  recording.doc.hash_kind = HashKind::whole;
  EXPECT_EQ(verify(replayer_of(recording)).mismatched, 2);
  int changed = 0;
  for (const OpRow& op : recording.doc.ops)
    for (const auto& [name, tensor] : {std::pair{"aten::mul", twice}, {"aten::add", turned}}) {
      if (op.name != name || op.written_count != 1) continue;
      const std::int32_t row = recording.doc.written[static_cast<std::size_t>(op.first_written)];
      const at::Tensor copy = tensor.contiguous();
      const std::int32_t stats = recording.doc.tensors[static_cast<std::size_t>(row)].stats;
      recording.doc.stats[static_cast<std::size_t>(stats)].hash =
          hash_bytes(copy.const_data_ptr(), copy.nbytes());
      ++changed;
    }
  ASSERT_EQ(changed, 2);
  EXPECT_TRUE(verify(replayer_of(recording)).bit_exact);
}

TEST(Verify, NamesWhatIsDifferentHere) {
  Recording recording = record(program("mlp").make(1, at::kFloat));
  recording.doc.environment["torch_version"] = "1.0.0";
  recording.doc.environment["env.NANQUEST_TEST_ONLY"] = "7";
  const VerifyResult result = verify(replayer_of(recording));
  EXPECT_TRUE(result.bit_exact);
  ASSERT_EQ(result.differences.size(), 2u);
  EXPECT_EQ(result.differences[0], "env.NANQUEST_TEST_ONLY: recorded 7, here (unset)");
  EXPECT_EQ(result.differences[1].find("torch_version: recorded 1.0.0, here "), 0u);
}

TEST(Verify, LeavesThreadsAndGeneratorAsTheyWere) {
  Recording recording = record(program("dropout").make(1, at::kFloat));
  const int threads = at::get_num_threads();
  recording.doc.environment["num_threads"] = std::to_string(threads + 1);
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state().clone();
  int during = 0;
  RunOptions options;
  options.on_op = [&](std::int32_t, const std::vector<at::Tensor>&) { during = at::get_num_threads(); };
  (void)replayer_of(recording).run(options);
  EXPECT_EQ(during, threads + 1);
  EXPECT_EQ(at::get_num_threads(), threads);
  EXPECT_TRUE(at::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(Verify, ASecondRunStartsFromTheSameValues) {
  const Replayer replayer = replayer_of(record(program("fused_adamw").make(2, at::kFloat)));
  EXPECT_TRUE(verify(replayer).bit_exact);
  EXPECT_EQ(replayer.run({.precision = Precision::fp64}).failed, 0);
  EXPECT_TRUE(verify(replayer).bit_exact);
}

}  // namespace
}  // namespace nanquest::testing
