/// TinyTraining under a Probe, and a scratch run directory.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "probe/nanquest.h"
#include "tests/guard/tiny_training.h"

namespace nanquest::guard::testing {

/// A new empty directory, removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nanquest-guard-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string path;
};

struct GuardedTraining {
  explicit GuardedTraining(ProbeOptions options) {
    Result<std::unique_ptr<Probe>> made = Probe::create(std::move(options));
    EXPECT_TRUE(made) << made.error().text();
    probe = std::move(made).value();
    for (std::size_t i = 0; i < net.parameters.size(); ++i)
      probe->watch_parameter(net.names[i], net.parameters[i]);
    probe->watch_buffer("norm.running_mean", net.running_mean);
    probe->watch_buffer("norm.running_var", net.running_var);
    probe->watch_optimizer([this] { return net.moments(); });
    probe->watch_undo([this] { return [this, position = net.position] { net.position = position; }; });
  }

  /// One step as a training loop does it.
  StepReport step(std::int64_t number, const Batch& batch) {
    const StepInputs inputs{.step = number,
                            .lr = net.lr,
                            .loss_scale = net.loss_scale,
                            .batch = {{"x", batch.x}, {"y", batch.y}},
                            .sample_ids = batch.ids};
    StepReport report = probe->step(inputs, [&] { return net.compute(batch); });
    if (report.ok()) {
      const double norm = net.gradient_norm();
      EXPECT_NEAR(report.grad_norm, norm, 1e-12 * norm);
      EXPECT_NEAR(report.clip_coefficient(1.0), std::min(1.0, 1.0 / (norm + 1e-6)), 1e-12);
      net.update();
      probe->after_update(number);
    }
    return report;
  }

  TinyTraining net;
  std::unique_ptr<Probe> probe;
};

/// The same loop with nothing of nanquest in it.
inline void train_without_probe(TinyTraining& net, const std::vector<Batch>& all) {
  for (const Batch& batch : all) {
    net.clear_gradients();
    net.compute(batch);
    net.update();
  }
}

}  // namespace nanquest::guard::testing
