#include "trainer/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "trainer/metrics/remaining_time.h"

namespace nanquest::trainer {
namespace {

const char* gate_word(Gate gate) {
  switch (gate) {
    case Gate::ok:
      return "";
    case Gate::scale_overflow:
      return "  scale overflow, halved";
    case Gate::non_finite:
      return "  NOT FINITE";
    case Gate::spike:
      return "  spike";
  }
  return "";
}

/// NaN without the sign that printf would show: it has no meaning and differs from run to run.
double unsigned_nan(double x) {
  return std::isnan(x) ? std::abs(x) : x;
}

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1),
      colour_(terminal_ && (std::getenv("NO_COLOR") == nullptr || *std::getenv("NO_COLOR") == '\0')) {}

Progress::~Progress() {
  close();
}

void Progress::close() {
  if (drawn_) std::fputc('\n', stderr);
  drawn_ = false;
}

std::string Progress::line(const StepEvent& e) const {
  char text[256];
  std::snprintf(text, sizeof text, "step %lld/%lld  loss %.4f  norm %.3g  scale %g  lr %.3g  %.0f %s/s",
                static_cast<long long>(e.step), static_cast<long long>(e.steps), unsigned_nan(e.loss),
                unsigned_nan(e.grad_norm), e.scale, e.lr, e.tokens_per_second, unit_);
  std::string all = text;
  for (const Metric& metric : e.held_out) {
    std::snprintf(text, sizeof text, "  held-out %.100s %.4f", metric.name.c_str(), metric.value);
    all += text;
  }
  if (e.seconds_left && e.step + 1 < e.steps) all += "  eta " + duration_text(*e.seconds_left);
  return all + gate_word(e.gate);
}

void Progress::on_step(const StepEvent& event) {
  const bool notable = event.gate != Gate::ok || !event.held_out.empty();
  if (!terminal_) {
    if (notable || event.step % every_ == 0 || event.step + 1 == event.steps)
      std::fprintf(stderr, "%s\n", line(event).c_str());
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!notable && event.step + 1 != event.steps && now - last_draw_ < std::chrono::milliseconds(100)) return;
  last_draw_ = now;
  constexpr int kWidth = 20;
  const auto done = static_cast<int>(kWidth * (event.step + 1) / std::max<std::int64_t>(1, event.steps));
  const std::string bar = std::string(static_cast<std::size_t>(done), '#') +
                          std::string(static_cast<std::size_t>(kWidth - done), '.');
  const bool bad = event.gate == Gate::non_finite;
  std::fprintf(stderr, "\r\033[K[%s] %s%s%s", bar.c_str(), colour_ && bad ? "\033[31m" : "",
               line(event).c_str(), colour_ && bad ? "\033[0m" : "");
  drawn_ = true;
  if (notable) close();
  std::fflush(stderr);
}

void Progress::on_message(const std::string& text) {
  close();
  std::fprintf(stderr, "%s%s%s\n", colour_ ? "\033[33m" : "", text.c_str(), colour_ ? "\033[0m" : "");
}

}  // namespace nanquest::trainer
