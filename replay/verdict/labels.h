/// labels: the names of causes, as they are written in a verdict, and what each means.
///
/// All labels that a verdict may hold are here, also those that no cause can prove yet: a reader of verdicts
/// needs the names, not the proofs. A proof is a file of replay/cause/causes. The word of a label in the file
/// is its name in capitals (words.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace nanquest {

/// Why an op made a bad value. A new label goes here and into labels.cpp; nothing is ever renumbered or
/// removed.
enum class Label : std::uint8_t {
  all_masked_row,
  mask_overflow,
  fp16_overflow,
  exp_overflow,
  log_zero,
  domain,
  div_zero,
  eps_underflow,
  empty_reduction,
  zero_times_inf,
  inf_logit,
  singular_grad,
  unselected_branch,
  logspace_inf_grad,
  degenerate_linalg,
  infeasible_target,
  norm_overflow,
  loss_scale,
  divergence,
  bad_data,
  bad_state,
  uninitialized,
  bad_setting,
  race,
  compiler,
  hardware,
  unknown,
  spike_data,
  spike_state,
  precision,
};

/// The label in plain words, for a person: "a value left the number format's range". Never empty.
std::string_view meaning(Label label);

}  // namespace nanquest
