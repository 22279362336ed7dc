/// Attachment: the probe in a program that is not Python. It waits; with the first op that begins to train,
/// on whatever thread that runs, it makes the run directory and observes that thread. It tells what is found
/// and completes the files when the program ends. One in a process, for good.
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
  /// What ends the program with exit code 4.
  struct Stops {
    bool on_incident = false, on_forecast = false;
  };
  Attachment(attach::AttachOptions options, Stops stops) : options_(std::move(options)), stops_(stops) {}

  /// Begins to observe the calling thread, which trains; false if that failed before, or fails, with a line.
  bool begin();
  /// The program ends. `raised`: the error that ends it, "" if none does. Only the first call does anything.
  void end(const std::string& raised);

  void begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) override;
  void ends(bool accumulates, bool again) override;

 private:
  /// What the session answered: told, and obeyed.
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
  int said_ = 0;  ///< incidents
  bool ended_ = false;
};

}  // namespace nanquest::program
