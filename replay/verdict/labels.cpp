#include "replay/verdict/labels.h"

#include <array>

#include "replay/verdict/words.h"

namespace nanquest {
namespace {

struct Row {
  Word<Label> name;
  std::string_view meaning;
};

constexpr Row kRows[] = {
    {{Label::all_masked_row, "ALL_MASKED_ROW"}, "a softmax over entries that are all masked"},
    {{Label::mask_overflow, "MASK_OVERFLOW"}, "a mask constant left the number format's range"},
    {{Label::fp16_overflow, "FP16_OVERFLOW"}, "a value left the number format's range"},
    {{Label::exp_overflow, "EXP_OVERFLOW"}, "an exponential of too large an argument"},
    {{Label::log_zero, "LOG_ZERO"}, "a logarithm of exactly zero"},
    {{Label::domain, "DOMAIN"}, "an argument outside the function's domain"},
    {{Label::div_zero, "DIV_ZERO"}, "a division by an exact zero"},
    {{Label::eps_underflow, "EPS_UNDERFLOW"}, "the protecting epsilon vanished in the number format"},
    {{Label::empty_reduction, "EMPTY_REDUCTION"}, "a reduction over no elements"},
    {{Label::zero_times_inf, "ZERO_TIMES_INF"}, "zero times an infinity"},
    {{Label::inf_logit, "INF_LOGIT"}, "an infinite logit reached a softmax or a loss"},
    {{Label::singular_grad, "SINGULAR_GRAD"}, "a derivative that is infinite at this point"},
    {{Label::unselected_branch, "UNSELECTED_BRANCH"}, "a branch that was not selected still sent NaN back"},
    {{Label::logspace_inf_grad, "LOGSPACE_INF_GRAD"}, "log-space arithmetic on nothing but -Inf"},
    {{Label::degenerate_linalg, "DEGENERATE_LINALG"}, "a degenerate matrix"},
    {{Label::infeasible_target, "INFEASIBLE_TARGET"}, "a target that the loss cannot meet"},
    {{Label::norm_overflow, "NORM_OVERFLOW"}, "the norm of the gradients overflowed"},
    {{Label::loss_scale, "LOSS_SCALE"}, "the loss scale itself went wrong"},
    {{Label::divergence, "DIVERGENCE"}, "values grew over many steps"},
    {{Label::bad_data, "BAD_DATA"}, "the batch holds bad values"},
    {{Label::bad_state, "BAD_STATE"}, "a weight, buffer or optimizer state was bad already"},
    {{Label::uninitialized, "UNINITIALIZED"}, "memory was read that was never written"},
    {{Label::bad_setting, "BAD_SETTING"}, "a setting is itself NaN, infinite or absurd"},
    {{Label::race, "RACE"}, "a tensor changed while the step was reading it"},
    {{Label::compiler, "COMPILER"}, "a compiled region gives other values than its ops one by one"},
    {{Label::hardware, "HARDWARE"}, "the same inputs give different outputs"},
    {{Label::unknown, "UNKNOWN"}, "the evidence does not decide"},
    {{Label::spike_data, "SPIKE_DATA"}, "the batch takes the step out of its usual range"},
    {{Label::spike_state, "SPIKE_STATE"}, "weights or optimizer state take the step out of its usual range"},
    {{Label::precision, "PRECISION"}, "a finite result that the number format made wrong"},
};

constexpr auto kWords = [] {
  std::array<Word<Label>, std::size(kRows)> words{};
  for (std::size_t i = 0; i < std::size(kRows); ++i) words[i] = kRows[i].name;
  return words;
}();

}  // namespace

template <>
std::span<const Word<Label>> words<Label>() {
  return kWords;
}

std::string_view meaning(Label label) {
  for (const Row& row : kRows)
    if (row.name.value == label) return row.meaning;
  return "";
}

}  // namespace nanquest
