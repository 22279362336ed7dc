// Ops that can't be run again: everything they made is on record, and the rest of the step comes back around
// them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

std::tuple<at::Tensor, at::Tensor, std::vector<at::Tensor>> many(const at::Tensor& x) {
  return {x * 2, x.argmax(), {x.sum(0), x.sum(1)}};
}
void shift(const at::Tensor& x, double by) {
  x.add_(by);
}

TORCH_LIBRARY(nanquest_replay_test, m) {
  m.def("many(Tensor x) -> (Tensor, Tensor, Tensor[])");
  m.def("shift_(Tensor(a!) x, float by) -> ()");
}
TORCH_LIBRARY_IMPL(nanquest_replay_test, CPU, m) {
  m.impl("many", &many);
  m.impl("shift_", &shift);
}

const c10::OperatorHandle& op_of(const char* name) {
  static std::map<std::string, c10::OperatorHandle> known;
  return known.try_emplace(name, c10::Dispatcher::singleton().findSchemaOrThrow(name, "")).first->second;
}

std::vector<at::Tensor> call(const char* name, std::vector<c10::IValue> stack) {
  op_of(name).callBoxed(stack);
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& t : value.toTensorVector()) tensors.push_back(t);
  }
  return tensors;
}

/// The step as it would be in a process without the library of these ops.
Recording without_the_library(Recording recording) {
  for (OpRow& op : recording.doc.ops)
    if (op.name.starts_with("nanquest_replay_test::")) op.name.replace(0, 20, "nanquest_not_loaded");
  return recording;
}

Step step_with_foreign_ops() {
  const at::Tensor x = at::arange(12, at::kFloat).view({3, 4}) / 7;
  return {{}, [x] {
            const auto made = call("nanquest_replay_test::many", {x});
            at::Tensor moved = at::zeros({4});
            call("nanquest_replay_test::shift_", {moved, 0.5});
            return (made[0].sum() + made[1].to(at::kFloat) + made[2].mul(moved).sum() + made[3].prod());
          }};
}

TEST(Opaque, ForeignOpsRunAgainWhereTheirLibraryIs) {
  const VerifyResult result = verify(replayer_of(record(step_with_foreign_ops())));
  EXPECT_TRUE(result.bit_exact);
  EXPECT_EQ(result.opaque_ops, 0);
}

TEST(Opaque, ForeignOpsGiveAllThatIsOnRecordWhereItIsNot) {
  const Recording recording = without_the_library(record(step_with_foreign_ops()));
  const Replayer replayer = replayer_of(recording);
  const VerifyResult result = verify(replayer);
  EXPECT_TRUE(result.bit_exact) << result.first_mismatch;
  EXPECT_EQ(result.opaque_ops, 2);
  EXPECT_EQ(result.failed_ops, 0);
  EXPECT_EQ(replayer.run({}).loss, recording.loss.to(at::kDouble).item<double>());
  // In another precision and op by op on recorded inputs the recorded values are used as well.
  EXPECT_EQ(replayer.run({.precision = Precision::fp64}).failed, 0);
  RunOptions local;
  local.local = true;
  EXPECT_EQ(replayer.run(local).failed, 0);
}

TEST(Opaque, WithoutRecordedOutputsTheReplayStopsThere) {
  Recording recording = without_the_library(record(step_with_foreign_ops()));
  std::erase_if(recording.data, [](const auto& d) { return d.first.starts_with("trace/opaque/"); });
  const Replayer replayer = replayer_of(recording);
  const VerifyResult result = verify(replayer);
  EXPECT_FALSE(result.bit_exact);
  EXPECT_GT(result.failed_ops, 0);
  const RunResult run = replayer.run({});
  const auto many_op = std::find_if(recording.doc.ops.begin(), recording.doc.ops.end(),
                                    [](const OpRow& op) { return op.name == "nanquest_not_loaded::many"; });
  const auto index = static_cast<std::size_t>(many_op - recording.doc.ops.begin());
  EXPECT_NE(run.ops[index].error.find("no such operator in this program"), std::string::npos)
      << run.ops[index].error;
}

TEST(Opaque, SparseTensorsAndWhatComesOutOfThem) {
  const at::Tensor index = at::tensor({0, 2, 1, 0}, at::kLong).view({2, 2});
  const at::Tensor dense = at::arange(12, at::kFloat).view({3, 4});
  const Step step{
      {}, [=] {
        const at::Tensor s = at::sparse_coo_tensor(index, at::tensor({1.5f, -2.f}), {3, 3}).coalesce();
        at::Tensor sum = at::zeros({3, 3});
        sum.add_(s, 2);
        return at::_sparse_mm(s, dense).sum() + sum.sum() + s.values().prod();
      }};
  const Recording recording = record(step);
  const VerifyResult result = verify(replayer_of(recording));
  EXPECT_TRUE(result.bit_exact) << result.first_mismatch;
  EXPECT_GT(result.opaque_ops, 0);
  EXPECT_EQ(result.failed_ops, 0);
}

TEST(Opaque, SparseValuesAreOnRecordCoalescedOrNot) {
  const at::Tensor index = at::tensor({1, 1, 3}, at::kLong).view({1, 3});
  const Step step{{}, [=] {
                    const at::Tensor values = at::tensor({1.f, INFINITY, -3.f}).mul(2);
                    const at::Tensor s = at::_sparse_coo_tensor_unsafe(index, values, {5});
                    const at::Tensor both = s.mul(3);
                    return both.coalesce()._values().nan_to_num().sum();
                  }};
  const Recording recording = record(step);
  int multiplied = 0, coalesced = 0;
  for (const OpRow& op : recording.doc.ops)
    for (std::int32_t i = 0; i < op.output_count && (op.flags & kOpOpaque); ++i) {
      const TensorRow& row = recording.doc.tensors[static_cast<std::size_t>(op.first_output + i)];
      if (row.stats == kNone) continue;
      const StatsRow& stats = recording.doc.stats[static_cast<std::size_t>(row.stats)];
      EXPECT_EQ(stats.pos_inf, 1u) << op.name;
      multiplied += op.name == "aten::mul" && stats.count == 3;
      coalesced += stats.count == 2;
    }
  EXPECT_EQ(multiplied, 1);
  EXPECT_GE(coalesced, 1);
  EXPECT_TRUE(verify(replayer_of(recording)).bit_exact);
}

TEST(Opaque, NestedTensorsAreRecorded) {
  const at::Tensor rows = at::arange(8, at::kFloat).view({2, 4});
  const Step step{
      {}, [=] {
        const at::Tensor nested = at::_nested_tensor_from_tensor_list({rows, rows.slice(0, 0, 1)});
        // Both parts lie in one storage that no op returned as a whole.
        const std::vector<at::Tensor> parts = nested.relu().unbind(0);
        return at::nested_to_padded_tensor(nested.relu(), 0.0).sum() + parts[0].sum() + parts[1].exp().sum();
      }};
  const VerifyResult result = verify(replayer_of(record(step)));
  EXPECT_TRUE(result.bit_exact) << result.first_mismatch;
}

TEST(Opaque, MemoryThatOthersWriteInsideAStep) {
  std::vector<float> memory(8, 1.0f);
  const at::Tensor shared = at::from_blob(memory.data(), {8}, at::kFloat);
  const Step step{{}, [&memory, shared] {
                    std::fill(memory.begin(), memory.end(), 2.0f);
                    const at::Tensor first = shared.exp().sum();
                    memory[3] = -7;
                    shared.add_(1);
                    memory[5] = 9;
                    return first + shared.exp().sum();
                  }};
  for (const bool watch : {true, false}) {
    const Recording recording = record_step(step.state, step.run, {.watch = watch, .stacks = false});
    const Replayer replayer = replayer_of(recording);
    const VerifyResult result = verify(replayer);
    EXPECT_TRUE(result.bit_exact) << result.first_mismatch;
    EXPECT_EQ(replayer.run({}).loss, recording.loss.to(at::kDouble).item<double>());
  }
}

/// A derivative of its own: its forward runs without gradients, so that no op in it makes a node.
class Triple : public torch::autograd::Function<Triple> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.mul(3); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list g) {
    return {g[0].mul(3)};
  }
};

TEST(Opaque, NodesOfFunctionsAreLinkedToTheOpThatMadeTheirOutput) {
  const at::Tensor w = at::ones({3}).set_requires_grad(true);
  const Step step{{}, [w] {
                    at::Tensor loss = Triple::apply(w).sin().sum();
                    loss.backward();
                    return loss;
                  }};
  const SnapshotDoc doc = record(step).doc;
  bool found = false;
  for (const OpRow& op : doc.ops)
    if (op.phase == Phase::backward && op.name == "aten::mul" &&
        op.node.find("CppNode") != std::string::npos) {
      found = true;
      ASSERT_NE(op.forward_op, kNone);
      EXPECT_EQ(doc.ops[static_cast<std::size_t>(op.forward_op)].name, "aten::mul");
      EXPECT_EQ(doc.ops[static_cast<std::size_t>(op.forward_op)].phase, Phase::forward);
    }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace nanquest::testing
