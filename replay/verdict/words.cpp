#include "replay/verdict/words.h"

#include <array>

#include "probe/trace/names.h"

namespace nanquest {

template <>
std::span<const Word<Phase>> words<Phase>() {
  static const std::array all = [](auto... phases) {
    return std::array{Word<Phase>{phases, phase_name(phases)}...};
  }(Phase::input, Phase::forward, Phase::backward, Phase::optimizer);
  return all;
}

template <>
std::span<const Word<Origin>> words<Origin>() {
  static constexpr Word<Origin> all[] = {{Origin::op, "op"},
                                         {Origin::input, "input"},
                                         {Origin::parameter, "parameter"},
                                         {Origin::buffer, "buffer"},
                                         {Origin::optimizer_state, "optimizer_state"},
                                         {Origin::gradient, "gradient"},
                                         {Origin::setting, "setting"},
                                         {Origin::loss_scale, "loss_scale"},
                                         {Origin::multi_step, "multi_step"}};
  return all;
}

template <>
std::span<const Word<BadValue>> words<BadValue>() {
  static constexpr Word<BadValue> all[] = {{BadValue::none, ""},         {BadValue::nan, "nan"},
                                           {BadValue::plus_inf, "+inf"}, {BadValue::minus_inf, "-inf"},
                                           {BadValue::mixed, "mixed"},   {BadValue::silent, "silent"}};
  return all;
}

template <>
std::span<const Word<PrecisionResult>> words<PrecisionResult>() {
  static constexpr Word<PrecisionResult> all[] = {{PrecisionResult::not_run, "not_run"},
                                                  {PrecisionResult::finite, "finite"},
                                                  {PrecisionResult::non_finite, "non_finite"}};
  return all;
}

template <>
std::span<const Word<PrecisionVerdict>> words<PrecisionVerdict>() {
  static constexpr Word<PrecisionVerdict> all[] = {
      {PrecisionVerdict::curable, "curable"},
      {PrecisionVerdict::delayed, "delayed"},
      {PrecisionVerdict::structural, "structural"},
      {PrecisionVerdict::not_a_precision_matter, "not_a_precision_matter"}};
  return all;
}

template <>
std::span<const Word<Basis>> words<Basis>() {
  static constexpr Word<Basis> all[] = {{Basis::every_output, "every_output"},
                                        {Basis::survivors, "survivors"}};
  return all;
}

template <>
std::span<const Word<Agreement>> words<Agreement>() {
  static constexpr Word<Agreement> all[] = {{Agreement::bit_for_bit, "bit_for_bit"},
                                            {Agreement::within_bounds, "within_bounds"},
                                            {Agreement::differs, "differs"},
                                            {Agreement::not_compared, "not_compared"}};
  return all;
}

template <>
std::span<const Word<ChangeKind>> words<ChangeKind>() {
  static constexpr Word<ChangeKind> all[] = {{ChangeKind::precision, "precision"},
                                             {ChangeKind::data, "data"},
                                             {ChangeKind::op, "op"},
                                             {ChangeKind::hyperparameter, "hyperparameter"},
                                             {ChangeKind::placebo, "placebo"}};
  return all;
}

template <>
std::span<const Word<Scope>> words<Scope>() {
  static constexpr Word<Scope> all[] = {
      {Scope::op, "op"}, {Scope::region, "region"}, {Scope::step, "step"}, {Scope::run, "run"}};
  return all;
}

template <>
std::span<const Word<TrialResult>> words<TrialResult>() {
  static constexpr Word<TrialResult> all[] = {{TrialResult::finite, "finite"},
                                              {TrialResult::non_finite, "non_finite"},
                                              {TrialResult::failed, "failed"},
                                              {TrialResult::in_range, "in_range"},
                                              {TrialResult::out_of_range, "out_of_range"}};
  return all;
}

template <>
std::span<const Word<Depth>> words<Depth>() {
  static constexpr Word<Depth> all[] = {{Depth::size, "size"},       {Depth::function, "function"},
                                        {Depth::operand, "operand"}, {Depth::use, "use"},
                                        {Depth::purpose, "purpose"}, {Depth::source, "source"},
                                        {Depth::meaning, "meaning"}};
  return all;
}

template <>
std::span<const Word<RehearsedKind>> words<RehearsedKind>() {
  static constexpr Word<RehearsedKind> all[] = {{RehearsedKind::unchanged, "unchanged"},
                                                {RehearsedKind::placebo, "placebo"},
                                                {RehearsedKind::change, "change"}};
  return all;
}

std::string spoken(BadValue value, std::uint64_t count) {
  return value_words(word(value), count == 1);
}

std::string_view spoken(Origin origin) {
  return origin == Origin::optimizer_state ? "optimizer state"
         : origin == Origin::loss_scale    ? "loss scale"
                                           : word(origin);
}

std::string_view spoken(TrialResult result) {
  return result == TrialResult::non_finite     ? "still non-finite"
         : result == TrialResult::in_range     ? "in its usual range"
         : result == TrialResult::out_of_range ? "still out of its range"
                                               : word(result);
}

}  // namespace nanquest
