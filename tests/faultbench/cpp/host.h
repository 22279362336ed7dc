/// A plain training program in C++ around a fault, with the probe in it as its public header says. Families are files beside this
/// one; their truths are in truths.py.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace faultbench {

/// One batch. `extra` is the family's own, undefined where it has none.
struct Batch {
  at::Tensor x, y, extra;  ///< [8, 16, 16], labels [8]
};

/// Where the loop is, and whether the fault strikes there.
struct Clock {
  std::int64_t step = 0, strike = 4;
  bool control = false, repaired = false;  ///< never set in a program under test
  bool striking() const { return !control && step == strike; }
};

using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

/// What a family overrides; what it does not override is a healthy program. `variant` names its case.
class Fault {
 public:
  Fault(const Clock& clock, std::string variant) : clock_(clock), variant_(std::move(variant)) {}
  virtual ~Fault() = default;
  virtual void prepare(Parameters&, at::ScalarType) {}        ///< parameters of its own
  virtual void batch(Batch&) {}                               ///< the loader's last act
  virtual at::Tensor part(const at::Tensor& x) { return x; }  ///< after the fourth block; x [8, 16, 32]
  virtual at::Tensor extra_loss(const at::Tensor& hidden) { return at::zeros({}, hidden.options()); }
  virtual void between(Parameters&) {}  ///< before a step: loading, pruning
  /// The update, without gradients. True if the family has one of its own.
  virtual bool update(Parameters&) { return false; }
  Batch current;

 protected:
  bool is(const char* variant) const { return variant_ == variant; }
  const Clock& clock_;
  std::string variant_;
};

using Maker = std::function<std::unique_ptr<Fault>(const Clock&, const std::string&)>;

/// Puts a family on the program's list.
struct Family {
  Family(const char* name, Maker maker);
};

template <class F>
Maker maker() {
  return [](const Clock& clock, const std::string& variant) { return std::make_unique<F>(clock, variant); };
}

/// What the tracer saw of the step of the strike: the first bad outputs of ops with good inputs, as JSON lines on stdout.
class Tracer {
 public:
  Tracer();
  ~Tracer();

 private:
  std::uint64_t handle_;
};

}  // namespace faultbench
