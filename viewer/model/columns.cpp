#include "viewer/model/columns.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <vector>

#include "probe/snapshot/scalars.h"

namespace nanquest::viewer {
namespace {

/// Words that appear only in names of times and rates.
constexpr std::string_view kClock[] = {"second",     "seconds", "sec",      "secs",    "ms",
                                       "minutes",    "hours",   "eta",      "elapsed", "duration",
                                       "latency",    "runtime", "walltime", "clock",   "wallclock",
                                       "throughput", "fps",     "tflops",   "mfu"};

/// "train/tokens_per_second" in small letters: train, tokens, per, second.
std::vector<std::string> lower_words(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter))
      words.back() += static_cast<char>(std::tolower(letter));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

const KnownColumn* known_column(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(kKnownColumns, [&](const KnownColumn& known) { return name == known.name; });
  return found == std::end(kKnownColumns) ? nullptr : found;
}

std::string title_of_column(const std::string& name) {
  if (const KnownColumn* known = known_column(name)) return known->title;
  return name == "eval_loss" ? "Held-out loss" : name == "tokens_per_second" ? "Tokens per second" : name;
}

bool is_own_column(const std::string& name) {
  return is_probe_column(name) && known_column(name) == nullptr;
}

bool is_clock_column(const std::string& name) {
  const std::vector<std::string> words = lower_words(name);
  if (words.empty()) return false;
  // "time" and "s" are common in other names ("time_embedding_norm"): they mean a clock only at the end.
  if (words.back() == "time" || name.ends_with("/s") || name.ends_with("_per_s")) return true;
  return std::ranges::any_of(
      words, [](const std::string& word) { return std::ranges::find(kClock, word) != std::end(kClock); });
}

}  // namespace nanquest::viewer
