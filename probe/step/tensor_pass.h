/// TensorPass: one pass over many tensors, the heart of the gate.
///
///     TensorPass pass;
///     pass.begin();
///     for (at::Tensor& g : gradients) pass.add(g);
///     pass.run(1.0 / loss_scale);
///     pass.stats(0).sum_squares …
///
/// Dense CPU tensors of fp64, fp32, fp16, bf16 (and complex, as pairs of reals) are read once by raw
/// loops, big sets by several threads; results don't depend on the number of threads. Everything else
/// (CUDA, strided, sparse, other types) is measured where it lies, with one copy to the host per run and
/// device. A run has two halves, between which nobody has to wait for a device:
///
///     pass.start(1.0 / loss_scale);
///     … if (pass.ready()) …
///     pass.finish();
///
/// It never touches autograd. Lists are kept between runs: a run over the same tensors allocates nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/numerics/gate_loops.h"

namespace nanquest {

class TensorPass {
 public:
  /// Forgets the tensors of the last run.
  void begin();

  /// Adds a tensor; its index is the number of tensors added before. Undefined, empty and integer tensors are
  /// ignored. The reference must be valid until `run` returns.
  void add(const at::Tensor& tensor);

  /// Adds a number to read: a one-element tensor (of more elements, their sum). On another device it is
  /// copied together with that device's measurements. `in_word`: `word` is about it too. Returns its index
  /// for `value`.
  std::size_t read(const at::Tensor& number, bool in_word = true);

  /// Multiplies every element by `factor` in place (not if it is 1) and measures what is stored then.
  /// Numbers given to `read` are not multiplied. May throw c10::Error for tensors that ATen itself can't
  /// multiply; those that it can multiply but not measure count as nothing.
  void run(double factor);

  /// The first half of `run`: CPU tensors are measured, devices begin to. The tensors may go when it returns.
  void start(double factor);
  /// Whether something is on its way from a device.
  bool pending() const;
  /// Whether `finish` has nothing to wait for.
  bool ready() const;
  /// One fp32 number on a device where some of them lie, after `start`: 1 if an element, a norm or a number
  /// is NaN or Inf, on whatever device, else 0. Undefined if a tensor lies on the CPU, or a number there is
  /// NaN or Inf.
  at::Tensor word() const;
  /// The second half: waits for what is on its way. Where a device has no kernel that counts (device_ops.h),
  /// a tensor with NaN or Inf has 1 non-finite element, as it may be gone.
  void finish();

  /// What the run found in tensor `index`. Complex numbers are measured as pairs of reals.
  const LoopStats& stats(std::size_t index) const { return stats_[index]; }
  std::size_t size() const { return stats_.size(); }
  /// The number of a tensor given to `read`, as it was when `run` ran.
  double value(std::size_t index) const { return numbers_[index].value; }

 private:
  struct Chunk {
    void* data;
    std::size_t count;
    std::uint32_t tensor;
    DType type;
    LoopStats stats;
  };

  struct Number {
    at::Tensor tensor;
    double value;
    bool in_word;
  };

  void add_chunks(std::uint32_t index, const at::Tensor& tensor, DType type, bool complex);
  /// What one device measures.
  struct OnDevice {
    std::vector<std::uint32_t> rows;  ///< tensors, by their index
    std::vector<std::size_t> reads;   ///< numbers, by theirs; last those that are not in the word
    std::size_t beside = 0;           ///< how many these are
    bool counts = false;              ///< `host` is look's `found`; else norms, largest values and numbers
    at::Tensor found, word;           ///< there; the word only if the device counts
    at::Tensor host;                  ///< on its way, until the event
    std::optional<c10::Event> event;  ///< none: the host has waited
  };

  void run_chunks(double factor);
  void start_other(double factor);
  void start_device(at::Device device);
  /// Sends `found` to the host, which goes on.
  static void send(const at::Tensor& found, OnDevice& to);
  void take(const OnDevice& from);
  /// Of tensors that are still there: what norms don't tell.
  void recount();

  std::vector<Chunk> chunks_;
  std::vector<std::pair<std::uint32_t, const at::Tensor*>> other_;  ///< what the raw loops can't read
  std::vector<Number> numbers_;
  std::vector<LoopStats> stats_;
  std::vector<OnDevice> on_device_;
  std::vector<std::uint32_t> uncounted_;  ///< non-finite tensors whose elements nobody counted
  std::size_t bytes_ = 0;
};

/// Adds to `names` those of `tensors` that hold NaN or Inf, in order, each name prefixed with `kind`. `pass`
/// measures them.
void add_non_finite(TensorPass& pass, const char* kind,
                    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                    std::vector<std::string>& names);

/// Name of the first of `tensors` that holds NaN or Inf, "" if none does.
std::string first_non_finite(TensorPass& pass,
                             const std::vector<std::pair<std::string, at::Tensor>>& tensors);

}  // namespace nanquest
