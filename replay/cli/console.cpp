#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "probe/snapshot/reader.h"
#include "replay/cli/commands.h"

namespace nanquest::cli {

int fail(const Error& error) {
  std::fprintf(stderr, "nanquest-replay: %s\n", error.text().c_str());
  return exit_code(error.code);
}

Result<Replayer> open_snapshot(const Common& common) {
  auto replayer = Replayer::open(common.snapshot);
  if (!replayer) return replayer;
  // A damaged tensor must not lead to a verdict: every one is checked against its checksum first.
  const auto tensors = replayer->reader().tensors();
  if (!tensors) return tensors.error();
  for (const TensorInfo& t : *tensors)
    if (const auto data = replayer->reader().read_tensor(t.path); !data) return data.error();
  return replayer;
}

Progressor::Progressor(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progressor::~Progressor() {
  clear();
}

void Progressor::say(const std::string& what) {
  if (quiet_) return;
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%.110s …", what.c_str());
    std::fflush(stderr);
    shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", what.c_str());
  }
}

std::function<void(const std::string& what)> saying(const Doing& doing, Progressor& progress) {
  return [&](const std::string& what) {
    doing(what);
    progress.say(what);
  };
}

void Progressor::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

namespace {

using Handler = void (*)(int);
Handler handler_before = SIG_DFL;

extern "C" void stop_searching(int) {
  Lab::stop();
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

StopOnInterrupt::StopOnInterrupt() {
  handler_before = std::signal(SIGINT, stop_searching);
}

StopOnInterrupt::~StopOnInterrupt() {
  std::signal(SIGINT, handler_before);
}

bool stdout_has_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && !(no_colour && *no_colour);
}

int stdout_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
    return size.ws_col;
  return 100;
}

std::string stem_of(const std::string& snapshot) {
  return snapshot.size() > 3 && snapshot.ends_with(".h5") ? snapshot.substr(0, snapshot.size() - 3)
                                                          : snapshot;
}

std::string size_text(std::uint64_t bytes) {
  constexpr double kThousand = 1000;
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  double size = static_cast<double>(bytes) / kThousand;
  const char* unit = "kB";
  for (const char* larger : {"MB", "GB", "TB"}) {
    if (size < kThousand) break;
    size /= kThousand;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, unit);
  return text;
}

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Result<Precision> precision_from(const std::string& text) {
  if (text == "as-recorded") return Precision::as_recorded;
  if (text == "bf16") return Precision::bf16;
  if (text == "fp32") return Precision::fp32;
  if (text == "fp64") return Precision::fp64;
  return Error{ErrorCode::usage, "precision \"" + text + "\" is not known",
               "one of as-recorded, bf16, fp32, fp64"};
}

Result<RunOptions> run_options(const RunArguments& arguments, const SnapshotDoc& doc) {
  RunOptions options;
  options.local = arguments.local;
  const auto whole = precision_from(arguments.precision);
  if (!whole) return whole.error();
  options.precision = *whole;
  for (const std::string& text : arguments.modules) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos)
      return Error{ErrorCode::usage, "--module \"" + text + "\": no \"=\"",
                   "write --module blocks.1.mlp=fp32"};
    const std::string path = text.substr(0, equals);
    const auto precision = precision_from(text.substr(equals + 1));
    if (!precision) return precision.error();
    bool known = false;
    for (const ModuleRow& m : doc.modules) known = known || m.path == path || m.path.starts_with(path + ".");
    if (!known)
      return Error{ErrorCode::usage, "--module: the snapshot has no module \"" + path + "\"",
                   "nanquest-replay info lists them"};
    options.edit.module_precision[path] = *precision;
  }
  return options;
}

}  // namespace nanquest::cli
