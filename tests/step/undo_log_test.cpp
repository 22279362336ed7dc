#include "probe/step/undo_log.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace nanquest {
namespace {

TEST(UndoLog, random_numbers_come_again) {
  at::manual_seed(11);
  UndoLog undo;
  undo.watch_device(at::kCPU);
  at::randn({3});  // leaves a cached normal behind
  undo.save();
  const at::Tensor first = at::cat({at::randn({5}), at::rand({5}), at::randn({1})});
  undo.restore();
  const at::Tensor second = at::cat({at::randn({5}), at::rand({5}), at::randn({1})});
  EXPECT_TRUE(at::equal(first, second));
  undo.restore();
  EXPECT_TRUE(at::equal(first.slice(0, 0, 5), at::randn({5})));
}

TEST(UndoLog, own_generator_is_put_back) {
  at::Generator generator = at::detail::getDefaultCPUGenerator().clone();
  UndoLog undo;
  undo.watch_generator(generator);
  undo.save();
  const at::Tensor first = at::randn({4}, generator);
  undo.restore();
  EXPECT_TRUE(at::equal(first, at::randn({4}, generator)));
}

TEST(UndoLog, buffers_of_every_layout_are_put_back) {
  at::Tensor plain = at::randn({100});
  at::Tensor count = at::zeros({}, at::kLong);
  at::Tensor base = at::randn({10, 10});
  at::Tensor strided = base.slice(1, 0, 10, 3);
  at::Tensor transposed = at::randn({4, 6}).t();
  at::Tensor half = at::randn({9}).to(at::kHalf);
  at::Tensor empty = at::empty({0});
  const std::vector<at::Tensor> all = {plain, count, strided, transposed, half, empty};
  std::vector<at::Tensor> before;
  UndoLog undo;
  for (const at::Tensor& t : all) {
    undo.watch_buffer(t);
    before.push_back(t.clone());
  }
  undo.save();
  for (int round = 0; round < 2; ++round) {
    for (at::Tensor t : all) t.fill_(7);
    plain.data_ptr<float>()[5] = std::numeric_limits<float>::infinity();  // behind the version counter
    undo.restore();
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(at::equal(all[i], before[i])) << i;
  }
}

TEST(UndoLog, host_state_is_put_back_as_often_as_asked) {
  double scale = 1024;
  int position = 3;
  UndoLog undo;
  undo.watch_host([&] { return [&, s = scale] { scale = s; }; });
  undo.watch_host([&] { return [&, p = position] { position = p; }; });
  undo.save();
  for (int i = 0; i < 2; ++i) {
    scale = 0;
    position = 99;
    undo.restore();
    EXPECT_EQ(scale, 1024);
    EXPECT_EQ(position, 3);
  }
  scale = 512;
  undo.save();
  scale = 1;
  undo.restore();
  EXPECT_EQ(scale, 512);
}

TEST(UndoLog, one_failing_host_does_not_keep_the_rest_from_being_put_back) {
  int position = 3;
  UndoLog undo;
  undo.watch_host([] { return [] { throw std::runtime_error("broken"); }; });
  undo.watch_host([&] { return [&, p = position] { position = p; }; });
  undo.save();
  position = 4;
  EXPECT_THROW(undo.restore(), std::runtime_error);
  EXPECT_EQ(position, 3);
}

TEST(UndoLog, a_word_decides_whether_buffers_are_put_back) {
  at::Tensor mean = at::ones({3}), count = at::zeros({}, at::kLong);
  UndoLog undo;
  undo.watch_buffer(mean);
  undo.watch_buffer(count);
  undo.save();
  mean.fill_(std::numeric_limits<float>::quiet_NaN());
  count.add_(1);
  EXPECT_TRUE(undo.restore_buffers_if(at::zeros({})));
  EXPECT_EQ(count.item<int>(), 1);
  EXPECT_TRUE(undo.restore_buffers_if(at::ones({})));
  EXPECT_TRUE(at::equal(mean, at::ones({3})));
  EXPECT_EQ(count.item<int>(), 0);
  // On another device than the word's only what no step has written.
  const at::Tensor elsewhere = at::ones({}, at::device(at::kMeta));
  EXPECT_TRUE(undo.restore_buffers_if(elsewhere));
  count.add_(1);
  EXPECT_FALSE(undo.restore_buffers_if(elsewhere));
}

TEST(UndoLog, restore_before_any_save_changes_nothing) {
  at::Tensor buffer = at::ones({3});
  UndoLog undo;
  undo.watch_buffer(buffer);
  undo.restore();
  EXPECT_TRUE(at::equal(buffer, at::ones({3})));
}

}  // namespace
}  // namespace nanquest
