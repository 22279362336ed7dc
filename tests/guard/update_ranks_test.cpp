// An update that spoils weights in one process of many: its file is like that of any other incident. The
// other processes are played by files and by a group without members.
#include <gtest/gtest.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "probe/snapshot/new_file.h"
#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/reader.h"
#include "probe/trace/collectives.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

/// The work of a collective without other members.
class Done : public ::c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
};

/// One of three ranks, without the others.
class Alone : public ::c10d::Backend {
 public:
  Alone() : Backend(1, 3) {}
  const std::string getBackendName() const override { return "alone"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return c10::make_intrusive<Options>("alone"); }
  c10::intrusive_ptr<::c10d::Work> allreduce(std::vector<at::Tensor>&,
                                             const ::c10d::AllreduceOptions&) override {
    return c10::make_intrusive<Done>();
  }
};

/// A step whose update, which is recorded because its rate is no number, does `work` to the first weight.
StepReport spoil(GuardedTraining& guarded, const std::function<void(at::Tensor&)>& work) {
  const std::vector<Batch> all = batches(1);
  EXPECT_TRUE(
      guarded.probe->step({.step = 0, .lr = std::nan("")}, [&] { return guarded.net.compute(all[0]); }).ok());
  at::Tensor weight = guarded.net.parameters[0].detach();
  return guarded.probe->update(0, [&] { work(weight); });
}

TEST(UpdateOfRanks, leaves_its_file_to_the_rank_that_was_first) {
  const ScratchDirectory scratch;
  const std::string run_dir = scratch.path + "/run";
  GuardedTraining guarded({.run_dir = run_dir, .rank = 5, .world_size = 16});
  std::filesystem::create_directories(run_dir + "/incidents");
  const RankRow first{.standing = Standing::made_here, .collectives = 0, .text = "its own", .world_size = 16};
  ASSERT_EQ(make_new_file(first_rank_path(run_dir, 0), to_line(first)), NewFile::made);
  const StepReport report = spoil(guarded, [](at::Tensor& weight) { weight.div_(at::zeros({})); });
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_FALSE(report.state_corrupt) << "the update is undone, whoever writes the file";
  EXPECT_EQ(report.incident, "") << report.summary;
  EXPECT_NE(report.summary.find("rank 0 was first"), std::string::npos) << report.summary;
  const auto row = read_rank_row(rank_row_path(run_dir, 0, 5));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->standing, Standing::made_here);
  EXPECT_EQ(row->first, 0);
}

TEST(UpdateOfRanks, names_the_members_of_its_process_group) {
  const auto group = c10::make_intrusive<::c10d::ProcessGroup>(1, 3);
  group->setBackend(at::kCPU, ::c10d::ProcessGroup::BackendType::CUSTOM,
                    std::optional<c10::intrusive_ptr<::c10d::Backend>>(c10::make_intrusive<Alone>()));
  group->setDefaultBackend(::c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName("of the update");
  ::c10d::register_process_group("of the update", group);
  const auto all_reduce = [](const at::Tensor& tensor) {
    // By boxes: what the types of its arguments are depends on the version of LibTorch.
    torch::jit::Stack stack{tensor, "sum", "of the update"};
    c10::Dispatcher::singleton().findSchemaOrThrow("_c10d_functional::all_reduce", "").callBoxed(&stack);
    c10::Dispatcher::singleton().findSchemaOrThrow("_c10d_functional::wait_tensor", "").callBoxed(&stack);
    return stack.front().toTensor();
  };
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  const StepReport report =
      spoil(guarded, [&](at::Tensor& weight) { weight.div_(all_reduce(at::zeros({1}))); });
  ::c10d::unregister_process_group("of the update");
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << report.summary;
  const auto& environment = file->doc().environment;
  const auto members = environment.find(std::string(kProcessGroupKey) + "of the update");
  ASSERT_NE(members, environment.end());
  EXPECT_EQ(members->second, "0 1 2");
}

}  // namespace
}  // namespace nanquest::guard::testing
