// Outside memory that is overwritten before it is read: its values are not kept, unless an earlier step needs
// them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "probe/observe/observer.h"
#include "tests/record/side_by_side.h"

namespace nanquest::testing {
namespace {

/// A buffer larger than what is copied at once, and steps that are recorded, not watched.
struct Buffered {
  at::Tensor buffer = at::full({64, 1024}, 5.0), x = at::full({64, 1024}, 2.0);
  Recorder recorder{{.stacks = false}};
  std::int64_t number = 0;

  void step(const std::function<at::Tensor()>& run) {
    const auto session = ObserverSession::start(recorder);
    ASSERT_TRUE(session);
    recorder.begin_step(number++);
    const at::NoGradGuard no_grad;
    (void)run();
    recorder.end_step(/*keep=*/true);
  }
  /// The buffer's values at the beginning of the step, as in the file of the step.
  at::Tensor kept(std::int64_t step) {
    StepTables tables(recorder, *recorder.find(step));
    return tables.first_value(buffer);
  }
  at::Tensor viewed_and_filled() {
    const at::Tensor view = buffer.view({1024, 64});
    buffer.copy_(x);
    return view.sum();
  }
};

TEST(Unread, IsNotKeptWhereAllOfItIsOverwritten) {
  Buffered run;
  run.step([&] { return run.viewed_and_filled(); });
  EXPECT_TRUE(at::equal(run.kept(0), at::zeros({64 * 1024})));
}

TEST(Unread, IsKeptWhereSomethingReadIt) {
  Buffered run;
  run.step([&] {
    const at::Tensor sum = run.buffer.sum();
    return sum + run.viewed_and_filled();
  });
  EXPECT_TRUE(at::equal(run.kept(0), at::full({64 * 1024}, 5.0)));
}

TEST(Unread, IsKeptWhereAPartOfItStays) {
  Buffered run;
  run.step([&] {
    run.buffer.narrow(0, 0, 32).copy_(run.x.narrow(0, 0, 32));
    return run.buffer.sum();
  });
  EXPECT_TRUE(at::equal(run.kept(0), at::full({64 * 1024}, 5.0)));
}

TEST(Unread, IsKeptForAStepBeforeThatReadIt) {
  Buffered run;
  run.step([&] { return run.buffer.sum(); });
  run.step([&] { return run.viewed_and_filled(); });
  EXPECT_TRUE(at::equal(run.kept(0), at::full({64 * 1024}, 5.0)));
  EXPECT_TRUE(at::equal(run.kept(1), at::full({64 * 1024}, 5.0)));
}

}  // namespace
}  // namespace nanquest::testing
