/// Attachment: the probe in a program that is not Python. It waits until an op begins to train, on any
/// thread; then it creates the run directory and observes that thread. It prints findings and completes the
/// files when the program ends. One per process, never destroyed.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "probe/attach/session.h"
#include "probe/base/result.h"
#include "probe/program/engine.h"
#include "probe/program/steps.h"

namespace nanquest::program {

class Attachment final : public BackwardListener {
 public:
  /// The conditions that end the program with exit code 4.
  struct Stops {
    bool on_incident = false, on_forecast = false, on_spike = false;
  };
  Attachment(attach::AttachOptions options, Stops stops) : options_(std::move(options)), stops_(stops) {}

  /// Starts to observe the calling thread, which trains; false if that failed, now or earlier; it prints one
  /// line.
  bool begin();
  /// The program ends. `raised`: the error that ends it, "" if none. Only the first call has an effect.
  void end(const std::string& raised);

  void begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) override;
  void ends(bool accumulates, bool again) override;

 private:
  /// Prints and applies the session's answer.
  void heed(const attach::StepAnswer& answer);
  void tell(const attach::StepAnswer& answer, const std::string& end);
  void give_up(const std::string& line);
  bool trains_here() const { return steps_ && std::this_thread::get_id() == thread_; }
  nlohmann::json seen() const;

  attach::AttachOptions options_;
  Stops stops_;
  std::once_flag begun_;
  std::thread::id thread_;
  std::unique_ptr<attach::AttachSession> session_;
  std::unique_ptr<StepFinder> steps_;
  std::chrono::steady_clock::time_point next_note_;
  int said_ = 0;  ///< number of incidents printed
  bool ended_ = false;
};

}  // namespace nanquest::program
