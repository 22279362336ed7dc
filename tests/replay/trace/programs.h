/// Small training steps that replay tests record: each can be made in any floating dtype from the same
/// values.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "probe/record/record.h"
#include "replay/trace/replayer.h"

namespace nanquest::testing {

/// One step, ready to run; the closure keeps all its tensors alive.
struct Step {
  StepState state;
  std::function<at::Tensor()> run;
};

struct Program {
  std::string name;
  /// Makes the step: values are drawn in fp32 from `seed`, then converted to `dtype`.
  std::function<Step(int seed, at::ScalarType dtype)> make;
  bool random = false;    ///< draws numbers while it runs
  bool autocast = false;  ///< casts to 16 bits while it runs
};

/// By its name in the names of tests.
inline void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

const std::vector<Program>& programs();
const Program& program(const std::string& name);

/// Records one run of the step.
Recording record(const Step& step);

/// A replayer over the recording, without a file.
Replayer replayer_of(const Recording& recording);

/// Copies of the gradients (fp64, by position in doc.gradients; undefined if there is none) as they were when
/// an op last returned or wrote them; fill by setting RunOptions::on_op to `collect`.
class Gradients {
 public:
  explicit Gradients(const SnapshotDoc& doc) : doc_(doc) {}
  void collect(std::int32_t op, const std::vector<at::Tensor>& outputs);
  std::vector<at::Tensor> get() const;

 private:
  const SnapshotDoc& doc_;
  std::map<std::int32_t, std::pair<std::int32_t, at::Tensor>> last_;  // slot -> row, values
};

/// Autocast on the CPU while it lives, as the Python context manager does it.
class Autocast {
 public:
  explicit Autocast(at::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool was_on_;
  at::ScalarType was_;
};

}  // namespace nanquest::testing
