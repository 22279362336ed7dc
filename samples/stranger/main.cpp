// A training loop outside nanquest, with the probe: a linear model in half precision, with a learning rate
// that is far too high. The guard finds the overflow before the weights are written; the loop continues in
// fp32 with smaller steps.
// Usage: stranger [RUN_DIR]
#include <iostream>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <nanquest/probe/nanquest.h>

int main(int argc, char** argv) {
  at::manual_seed(1);
  auto x = at::randn({16, 8}), y = at::randn({16, 4}), w = at::randn({8, 4}).requires_grad_();
  double lr = 4, loss = 0;
  auto format = at::kHalf;

  auto probe = nanquest::Probe::create({.run_dir = argc > 1 ? argv[1] : "run"});
  if (!probe) { std::cerr << probe.error().text() << '\n'; return nanquest::exit_code(probe.error().code); }
  probe.value()->watch_parameter("w", w);
  for (int64_t step = 0; step < 1000; ++step) {
    auto report = probe.value()->step({.step = step, .lr = lr, .batch = {{"x", x}, {"y", y}}}, [&] {
      auto error = at::mm(x.to(format), w.to(format)).to(at::kFloat) - y;
      auto value = error.square().mean();
      value.backward();
      return value;
    });
    if (report.ok()) { loss = report.loss; at::NoGradGuard no_grad; w.sub_(w.grad(), lr); }
    else { lr = 0.7; format = at::kFloat; }
    if (!report.summary.empty()) std::cerr << report.summary << '\n';
  }
  int incidents = probe.value()->incidents();
  if (auto done = probe.value()->finish("finished"); !done) std::cerr << done.error().text() << '\n';
  std::cout << "final loss " << loss << ", incidents " << incidents << '\n';
  return incidents > 0 ? 1 : 0;
}
