// Probe::create, and what StepReport computes.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "probe/guard/probe.h"
#include "probe/nanquest.h"
#include "probe/numerics/clip.h"
#include "probe/step/one_line.h"
#include "probe/step/run_log.h"

namespace nanquest {

double StepReport::clip_coefficient(double max_norm) const {
  return nanquest::clip_coefficient(max_norm, grad_norm);
}

Result<std::unique_ptr<Probe>> Probe::create(ProbeOptions options) {
  if (options.tape < 0 || (options.tape > 0 && options.level != Level::trace))
    return Error{ErrorCode::usage,
                 "a tape of " + std::to_string(options.tape) + " steps is not possible here",
                 "a tape is of one step or more, at level trace"};
  if (!options.tape_folder.empty() && ::access((options.tape_folder + "/.").c_str(), W_OK | X_OK) != 0)
    return Error{ErrorCode::usage, options.tape_folder + ": " + std::strerror(errno),
                 "the tape's folder must be there, and files may be made in it"};
  try {
    std::optional<RunLog> log;
    if (options.level != Level::off) {
      Result<RunLog> made = RunLog::create(options);
      if (!made) return made.error();
      log.emplace(std::move(made).value());
    }
    return std::unique_ptr<Probe>(std::make_unique<guard::GuardedProbe>(std::move(options), std::move(log)));
  } catch (const std::exception& e) {
    return Error{ErrorCode::internal, "the probe can't start: " + one_line(e.what()), ""};
  }
}

}  // namespace nanquest
