/// Incidents made in memory: a step recorded, its culprit found, a Case over it.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "probe/record/record.h"
#include "probe/observe/module_scope.h"
#include "probe/trace/culprit.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/cause.h"
#include "replay/cause/diagnose.h"

namespace nanquest::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline at::Tensor leaf(const at::Tensor& values) {
  return values.clone().set_requires_grad(true);
}

/// A recorded step and the replayer over it.
class Incident {
 public:
  /// `notes`: entries of the file's environment, as the probe makes them of a program.
  Incident(const StepState& state, const std::function<at::Tensor()>& step,
           const std::map<std::string, std::string>& notes = {})
      : recording_(record_step(state, step)) {
    for (const auto& [key, value] : notes) recording_.doc.environment[key] = value;
    find_culprit(recording_.doc);
    std::map<std::string, at::Tensor> data(recording_.data.begin(), recording_.data.end());
    auto replayer = Replayer::from_memory(recording_.doc, std::move(data));
    EXPECT_TRUE(replayer.ok()) << replayer.error().text();
    if (replayer) replayer_ = std::make_unique<Replayer>(std::move(replayer).value());
  }

  const SnapshotDoc& doc() const { return recording_.doc; }
  const Replayer& replayer() const& { return *replayer_; }
  /// Reads from this incident, which has to outlive it.
  Case make() const& { return make_case(*replayer_); }
  Case make() const&& = delete;
  Verdict verdict() const { return diagnose(make(), reproduction_of(verify(*replayer_)), "memory"); }
  Finding finding() const { return find_cause(make()).finding; }

 private:
  Recording recording_;
  std::unique_ptr<Replayer> replayer_;
};

/// What is found of a step whose loss is f() and whose one parameter is `w`.
inline Finding found_in(const at::Tensor& w, const std::function<at::Tensor()>& f) {
  StepState state;
  state.parameters = {{"w", w}};
  w.mutable_grad() = at::Tensor();  // an earlier step's would be added to
  return Incident(state,
                  [&] {
                    const at::Tensor loss = f();
                    loss.backward();
                    return loss;
                  })
      .finding();
}

/// The first counterfactual whose text contains `part`; fails the test if there is none.
inline Counterfactual tried(const Verdict& v, const std::string& part) {
  for (const Counterfactual& c : v.counterfactuals)
    if (c.change.find(part) != std::string::npos) return c;
  ADD_FAILURE() << "nothing tried with \"" << part << "\"";
  return {};
}

}  // namespace nanquest::testing
