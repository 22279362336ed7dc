/// words: every choice of the contract as a type, with its word in the file.
///
///     std::string text(word(Origin::parameter));            // "parameter"
///     std::optional<Origin> o = from_word<Origin>("buffer");
///
/// A new value of an enum goes here and into its table in words.cpp. Readers of an older version refuse a
/// word that they don't know, with the name of its field.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "probe/snapshot/model.h"
#include "replay/verdict/labels.h"

namespace nanquest {

/// Where the bad value came from.
enum class Origin : std::uint8_t {
  op,
  input,
  parameter,
  buffer,
  optimizer_state,
  gradient,  ///< one that the parameter had before the step
  setting,   ///< a number that the program chose: a learning rate, a temperature
  loss_scale,
  multi_step
};
/// It was bad before the step computed anything from it.
constexpr bool came_from_outside(Origin origin) {
  return origin != Origin::op && origin != Origin::multi_step;
}

/// What the culprit's bad elements are. `silent`: an overflow that later ops turned into finite numbers.
enum class BadValue : std::uint8_t { none, nan, plus_inf, minus_inf, mixed, silent };

/// A whole step in another precision.
enum class PrecisionResult : std::uint8_t { not_run, finite, non_finite };

/// What the runs in other precisions show: finite one format up, and stays so (`curable`); finite now, but
/// values keep growing (`delayed`); the same op fails in fp64 (`structural`); the bad value came in with data
/// or state (`not_a_precision_matter`).
enum class PrecisionVerdict : std::uint8_t { curable, delayed, structural, not_a_precision_matter };

/// What was compared to prove that the replay is the same event: every written output, or what was alive at
/// the gate.
enum class Basis : std::uint8_t { every_output, survivors };

/// How the replay agrees with the recording. `within_bounds`: another device recorded it, and all values are
/// as near as can be expected of two devices.
enum class Agreement : std::uint8_t { bit_for_bit, within_bounds, differs, not_compared };

/// What a counterfactual changes.
enum class ChangeKind : std::uint8_t { precision, data, op, hyperparameter, placebo };

/// How far the run with a change went.
enum class Scope : std::uint8_t { op, region, step, run };

/// The result of the step with a change. `failed`: an op could not run that runs as recorded. `in_range` and
/// `out_of_range`: of a step that was finite as recorded, by the usual range of its run.
enum class TrialResult : std::uint8_t { finite, non_finite, failed, in_range, out_of_range };

/// How far behind the bad values a proof goes. Each level explains what the levels before it take as given.
enum class Depth : std::uint8_t {
  size,      ///< a result is larger than its format holds
  function,  ///< the function's value at these arguments
  operand,   ///< why the arguments are as they are
  use,       ///< what the step does with the results, shown by changing them
  purpose,   ///< what the op and its neighbours compute together
  source,    ///< no arithmetic made the number: the program set it, the batch contained it, or the memory was
             ///< uninitialised
  meaning,   ///< and what that number is used for, or what changed it
};

/// What a run of a rehearsal changes: nothing, a last bit of one weight, or the requested setting.
enum class RehearsedKind : std::uint8_t { unchanged, placebo, change };

template <class E>
struct Word {
  E value;
  std::string_view word;
};

/// All values of `E` with their words in the file. `E` is an enum of this header, Label or Phase.
template <class E>
std::span<const Word<E>> words();

/// The word of `value` in the file.
template <class E>
std::string_view word(E value) {
  for (const Word<E>& w : words<E>())
    if (w.value == value) return w.word;
  return {};
}

/// The value with this word; nothing if there is none.
template <class E>
std::optional<E> from_word(std::string_view text) {
  for (const Word<E>& w : words<E>())
    if (w.word == text) return w.value;
  return std::nullopt;
}

/// `count` bad elements as people say it, without the count: "NaN", "+Inf", "non-finite values".
std::string spoken(BadValue value, std::uint64_t count = 0);
/// "parameter", "optimizer state".
std::string_view spoken(Origin origin);
/// "finite", "still non-finite", "failed", "in its usual range": the result of changing one thing in a step.
std::string_view spoken(TrialResult result);

template <>
std::span<const Word<Label>> words<Label>();
template <>
std::span<const Word<Phase>> words<Phase>();
template <>
std::span<const Word<Origin>> words<Origin>();
template <>
std::span<const Word<BadValue>> words<BadValue>();
template <>
std::span<const Word<PrecisionResult>> words<PrecisionResult>();
template <>
std::span<const Word<PrecisionVerdict>> words<PrecisionVerdict>();
template <>
std::span<const Word<Basis>> words<Basis>();
template <>
std::span<const Word<Agreement>> words<Agreement>();
template <>
std::span<const Word<ChangeKind>> words<ChangeKind>();
template <>
std::span<const Word<Scope>> words<Scope>();
template <>
std::span<const Word<TrialResult>> words<TrialResult>();
template <>
std::span<const Word<Depth>> words<Depth>();
template <>
std::span<const Word<RehearsedKind>> words<RehearsedKind>();

}  // namespace nanquest
