// What the guard costs: a training step with the probe against the same step that clips with the usual
// norm (which everybody pays), and against one with neither; and what the capture of a bad step costs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "probe/nanquest.h"
#include "tests/bench/guard_gpt.h"
#include "tests/bench/report.h"

namespace nanquest::bench {
namespace {

struct Size {
  const char* name;
  std::int64_t width, depth, rows, tokens;
  int pairs;
  double goal;
};

class Guarded {
 public:
  Guarded(const Size& size, const std::string& run_dir)
      : net(size.width, size.depth, size.rows, size.tokens) {
    ProbeOptions options;
    options.run_dir = run_dir;
    options.max_incidents = 1000;
    auto made = Probe::create(options);
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().text().c_str());
      std::exit(3);
    }
    probe = std::move(made).value();
    for (std::size_t i = 0; i < net.parameters.size(); ++i)
      probe->watch_parameter(net.names[i], net.parameters[i]);
    probe->watch_optimizer([this] {
      std::vector<std::pair<std::string, at::Tensor>> all;
      for (std::size_t i = 0; i < net.names.size(); ++i) {
        all.emplace_back("exp_avg." + net.names[i], net.exp_avg[i]);
        all.emplace_back("exp_avg_sq." + net.names[i], net.exp_avg_sq[i]);
      }
      return all;
    });
  }

  StepReport step() {
    StepInputs inputs;
    inputs.step = number_++;
    inputs.lr = 1e-4;
    inputs.batch = {{"x", net.x}, {"y", net.y}, {"gain", net.gain}};
    inputs.sample_ids = {"corpus.txt:0", "corpus.txt:4096"};
    const StepReport report = probe->step(inputs, [this] { return net.compute(); });
    if (report.ok()) {
      net.update(report.clip_coefficient(1.0));
      probe->after_update(inputs.step);
    }
    return report;
  }

  Gpt net;
  std::unique_ptr<Probe> probe;

 private:
  std::int64_t number_ = 0;
};

/// `size` with as many rows as make a step with clipping as long as its name says on this machine, or a
/// little longer.
Size lasting(Size size, double wanted) {
  if (one_round()) return size;
  for (;; size.rows += (size.rows + 3) / 4) {
    Gpt net(size.width, size.depth, size.rows, size.tokens);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i)
      times.push_back(seconds([&] {
        net.clear_gradients();
        net.compute();
        net.update(net.usual_clip(1.0));
      }));
    std::sort(times.begin(), times.end());
    if (times[times.size() / 2] >= wanted) return size;
  }
}

void overhead(const Size& size, const std::string& directory) {
  Guarded ours(size, directory + "/" + size.name);
  Gpt clipping(size.width, size.depth, size.rows, size.tokens),
      bare(size.width, size.depth, size.rows, size.tokens);
  double loss = 0;
  const auto with_probe = [&] { loss += ours.step().loss; };
  const auto with_norm = [&] {
    clipping.clear_gradients();
    loss += clipping.compute().item<double>();
    clipping.update(clipping.usual_clip(1.0));
  };
  const auto with_neither = [&] {
    bare.clear_gradients();
    bare.compute();
    bare.update(1.0);
  };
  with_norm();
  std::printf(
      "# guard %s: time over that of the same step without probe, clipping or not; it takes %.2f ms\n",
      size.name, 1e3 * seconds(with_norm));
  const std::string name = std::string("guard_") + size.name;
  report(name + "_vs_clipping", paired_ratios(with_probe, with_norm, size.pairs), size.goal, Better::lower);
  report(name + "_vs_neither", paired_ratios(with_probe, with_neither, size.pairs), size.goal + 0.02,
         Better::lower);
}

void capture(const Size& size, const std::string& directory, int times) {
  Guarded guarded(size, directory + "/capture-" + size.name);
  const at::Tensor good = guarded.net.gain, bad = at::full({1}, std::numeric_limits<float>::infinity());
  std::printf(
      "# capture %s: what a bad step takes beyond a good one, its file on the disk included, in good steps\n",
      size.name);
  std::vector<double> ratios;
  for (int i = -1; i < rounds(times); ++i) {
    guarded.net.gain = good;
    const double step = seconds([&] { guarded.step(); });
    guarded.net.gain = bad;
    StepReport seen;
    const double failed = seconds([&] { seen = guarded.step(); });
    if (seen.incident.empty()) {
      std::fprintf(stderr, "no snapshot: %s\n", seen.summary.c_str());
      std::exit(70);
    }
    if (std::getenv("SWP"))
      std::fprintf(stderr, "LAP step %.1f\nLAP failed %.1f\n", step * 1e6, failed * 1e6);
    if (i >= 0) ratios.push_back((failed - step) / step);  // beyond the failing run itself
    std::filesystem::remove(seen.incident);
  }
  report(std::string("capture_bad_step_") + size.name, ratios, 3, Better::lower);
}

}  // namespace
}  // namespace nanquest::bench

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";  // "overhead" or "capture"; both without
  // One thread: a thread that waits for another one's core would be measured instead of the guard.
  at::set_num_threads(1);
  using nanquest::bench::Size;
  std::string pattern = (std::filesystem::temp_directory_path() / "nanquest-bench-XXXXXX").string();
  const std::string directory = mkdtemp(pattern.data());
  using nanquest::bench::lasting;
  const Size small = lasting({"5ms", 64, 2, 1, 64, 300, 1.03}, 5e-3),
             large = lasting({"50ms", 128, 4, 2, 128, 60, 1.01}, 50e-3);
  if (only.rfind("capture", 0) != 0) {
    if (only != "overhead-large") nanquest::bench::overhead(small, directory);
    nanquest::bench::overhead(large, directory);
  }
  if (only != "overhead") {
    nanquest::bench::capture(small, directory, only == "capture-small" ? 300 : 20);
    if (only != "capture-small") nanquest::bench::capture(large, directory, 10);
  }
  std::filesystem::remove_all(directory);
  return 0;
}
