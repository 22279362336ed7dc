// A training loop of somebody else's, with the probe in it: a linear model in half precision, whose learning rate
// is far too high. The guard catches the overflow before the weights see it, and the loop goes on with a smaller one.
// Usage: stranger [RUN_DIR]
#include <iostream>

#include <ATen/ATen.h>
#include <nanquest/probe/nanquest.h>

int main(int argc, char** argv) {
  at::manual_seed(1);
  auto x = at::randn({16, 8}), y = at::randn({16, 4}), w = at::randn({8, 4}).requires_grad_();
  double lr = 4, loss = 0;

  auto probe = nanquest::Probe::create({.run_dir = argc > 1 ? argv[1] : "run"});
  if (!probe) { std::cerr << probe.error().text() << '\n'; return nanquest::exit_code(probe.error().code); }
  probe.value()->watch_parameter("w", w);
  for (int64_t step = 0; step < 200; ++step) {
    auto report = probe.value()->step({.step = step, .lr = lr, .batch = {{"x", x}, {"y", y}}}, [&] {
      auto error = at::mm(x.to(at::kHalf), w.to(at::kHalf)).to(at::kFloat) - y;
      auto value = error.square().mean();
      value.backward();
      return value;
    });
    if (report.ok()) { loss = report.loss; at::NoGradGuard no_grad; w.sub_(w.grad(), lr); }
    else { std::cerr << report.summary << '\n'; lr = 0.2; }
  }
  int incidents = probe.value()->incidents();
  if (auto done = probe.value()->finish("finished"); !done) std::cerr << done.error().text() << '\n';
  std::cout << "final loss " << loss << ", incidents " << incidents << '\n';
  return incidents > 0 ? 1 : 0;
}
