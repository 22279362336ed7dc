// Usage: faultbench_cpp FAMILY VARIANT [--level off|guard|trace|watch] [--run-dir DIR] [--precision fp32|fp16|fp64] [--strike N]
//        [--seed N] [--control] [--repaired] [--traced]
// Prints each step's loss, and at the end which of loss, gradients, weights and moments of the step of the strike were bad.
#include "host.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "probe/nanquest.h"

namespace faultbench {
namespace {

std::map<std::string, Maker>& families() {
  static std::map<std::string, Maker> all;
  return all;
}

struct Options {
  std::string family, variant, level = "off", run_dir = "run", precision = "fp32";
  std::int64_t strike = 4, seed = 1;
  bool control = false, repaired = false, traced = false;
};

bool bad(const at::Tensor& t) {
  return t.defined() && !at::isfinite(t).all().item<bool>();
}

/// Eight residual blocks with norms; the family's part after the fourth; Adam by hand.
class Program {
 public:
  explicit Program(const Options& options) : options_(options) {
    at::manual_seed(static_cast<std::uint64_t>(options.seed));
    clock_.strike = options.strike;
    clock_.control = options.control;
    clock_.repaired = options.repaired;
    fault_ = families().at(options.family)(clock_, options.variant);
    type_ = options.precision == "fp64" ? at::kDouble : options.precision == "fp16" ? at::kHalf : at::kFloat;
    linear("stem", 16, 32);
    for (int b = 0; b < 8; ++b) {
      const std::string name = "blocks." + std::to_string(b);
      add(name + ".norm.weight", at::ones({32}));
      add(name + ".norm.bias", at::zeros({32}));
      linear(name + ".up", 32, 64);
      linear(name + ".down", 64, 32);
    }
    linear("head", 32, 8);
    fault_->prepare(parameters_, type_);
    prototypes_ = at::randn({8, 16, 16});
  }

  int run();

 private:
  void add(const std::string& name, const at::Tensor& values) {
    at::Tensor p = values.to(type_).clone().set_requires_grad(true);
    parameters_.emplace_back(name, p);
    at_[name] = p;
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out) {
    add(name + ".weight", at::randn({out, in}) / std::sqrt(static_cast<double>(in)));
    add(name + ".bias", at::zeros({out}));
  }
  at::Tensor apply(const std::string& name, const at::Tensor& x) {
    const nanquest::ModuleScope here(name);
    return at::linear(x, at_.at(name + ".weight"), at_.at(name + ".bias"));
  }
  Batch make_batch();
  at::Tensor compute();
  void update();
  void note();

  Options options_;
  Clock clock_;
  std::unique_ptr<Fault> fault_;
  at::ScalarType type_;
  Parameters parameters_;
  std::map<std::string, at::Tensor> at_;
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments_;
  at::Tensor prototypes_;
  double loss_ = 0;
  std::int64_t updates_ = 0;
};

Batch Program::make_batch() {
  Batch batch;
  batch.y = at::randint(8, {8}, at::kLong);
  batch.x = prototypes_.index({batch.y}) + 0.3 * at::randn({8, 16, 16});
  batch.x = batch.x.to(type_);
  fault_->batch(batch);
  return batch;
}

at::Tensor Program::compute() {
  const Batch& batch = fault_->current;
  at::Tensor x = apply("stem", batch.x);
  for (int b = 0; b < 8; ++b) {
    const nanquest::ModuleScope block("blocks." + std::to_string(b));
    const std::string name = "blocks." + std::to_string(b);
    at::Tensor h = at::layer_norm(x, {32}, at_.at(name + ".norm.weight"), at_.at(name + ".norm.bias"));
    h = at::linear(h, at_.at(name + ".up.weight"), at_.at(name + ".up.bias"));
    h = at::linear(at::gelu(h), at_.at(name + ".down.weight"), at_.at(name + ".down.bias"));
    x = x + 0.5 * h;
    if (b == 3) {
      const nanquest::ModuleScope part("part");
      x = fault_->part(x);
    }
  }
  const at::Tensor logits = apply("head", x.mean(1));
  at::Tensor loss = at::cross_entropy_loss(logits, batch.y) + fault_->extra_loss(x);
  loss.backward();
  return loss;
}

void Program::update() {
  const at::NoGradGuard quiet;
  ++updates_;
  if (fault_->update(parameters_)) return;
  const double eps = type_ == at::kHalf ? 1e-3 : 1e-8;
  for (auto& [name, p] : parameters_) {
    if (!p.grad().defined()) continue;
    auto& [m, v] = moments_[name];
    if (!m.defined()) m = at::zeros_like(p), v = at::zeros_like(p);
    m.mul_(0.9).add_(p.grad(), 0.1);
    v.mul_(0.99).addcmul_(p.grad(), p.grad(), 0.01);
    const double first = 1 - std::pow(0.9, updates_), second = 1 - std::pow(0.99, updates_);
    p.addcdiv_(m, (v / second).sqrt_().add_(eps), -1e-3 / first);
  }
}

void Program::note() {
  std::string harm;
  if (!std::isfinite(loss_)) harm += " loss";
  for (const auto& [name, p] : parameters_) {
    if (bad(p.grad())) {
      harm += " gradient";
      break;
    }
  }
  std::printf("harm before the update at step %lld:%s\n", static_cast<long long>(clock_.step), harm.c_str());
}

int Program::run() {
  std::unique_ptr<nanquest::Probe> probe;
  if (options_.level != "off") {
    const auto level = options_.level == "watch"   ? nanquest::Level::watch
                       : options_.level == "trace" ? nanquest::Level::trace
                                                   : nanquest::Level::guard;
    auto made = nanquest::Probe::create({.run_dir = options_.run_dir, .level = level});
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().text().c_str());
      return nanquest::exit_code(made.error().code);
    }
    probe = std::move(made.value());
    for (auto& [name, p] : parameters_) probe->watch_parameter(name, p);
    probe->watch_optimizer([this] {
      Parameters all;
      for (auto& [name, both] : moments_)
        all.emplace_back("m." + name, both.first), all.emplace_back("v." + name, both.second);
      return all;
    });
  }
  std::vector<Batch> batches;
  for (clock_.step = 0; clock_.step <= clock_.strike + 2; ++clock_.step) batches.push_back(make_batch());
  for (clock_.step = 0; clock_.step <= clock_.strike + 2; ++clock_.step) {
    fault_->current = batches[static_cast<std::size_t>(clock_.step)];
    fault_->between(parameters_);
    std::unique_ptr<Tracer> tracer;
    if (options_.traced && clock_.step == clock_.strike) tracer = std::make_unique<Tracer>();
    if (probe) {
      nanquest::StepInputs inputs{
          .step = clock_.step, .lr = 1e-3, .batch = {{"x", fault_->current.x}, {"y", fault_->current.y}}};
      if (fault_->current.extra.defined()) inputs.batch.emplace_back("extra", fault_->current.extra);
      auto report = probe->step(inputs, [this] { return compute(); });
      loss_ = report.loss;
      if (!report.summary.empty()) std::fprintf(stderr, "%s\n", report.summary.c_str());
      if (report.ok()) {
        report = probe->update(clock_.step, [this] { update(); });
        if (!report.summary.empty()) std::fprintf(stderr, "%s\n", report.summary.c_str());
      }
    } else {
      for (auto& [name, p] : parameters_) p.mutable_grad() = at::Tensor();
      loss_ = compute().item<double>();
      note();
      update();
    }
    tracer.reset();
    std::string weights;
    for (auto& [name, p] : parameters_) {
      if (bad(p)) weights = " weight";
    }
    std::printf("step %lld loss %.4f%s\n", static_cast<long long>(clock_.step), loss_, weights.c_str());
  }
  return probe && probe->incidents() > 0 ? 1 : 0;
}

Options parse(int argc, char** argv) {
  Options options;
  options.family = argc > 1 ? argv[1] : "";
  options.variant = argc > 2 ? argv[2] : "";
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (name == "--level")
      options.level = value();
    else if (name == "--run-dir")
      options.run_dir = value();
    else if (name == "--precision")
      options.precision = value();
    else if (name == "--strike")
      options.strike = std::stoll(value());
    else if (name == "--seed")
      options.seed = std::stoll(value());
    else if (name == "--control")
      options.control = true;
    else if (name == "--repaired")
      options.repaired = true;
    else if (name == "--traced")
      options.traced = true;
  }
  return options;
}

}  // namespace

Family::Family(const char* name, Maker maker) {
  families()[name] = std::move(maker);
}

}  // namespace faultbench

int main(int argc, char** argv) {
  const auto options = faultbench::parse(argc, argv);
  if (!faultbench::families().contains(options.family)) {
    for (const auto& [name, maker] : faultbench::families()) std::printf("%s\n", name.c_str());
    return 2;
  }
  at::set_num_threads(1);
  return faultbench::Program(options).run();
}
