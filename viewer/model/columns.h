/// What the column names of a run's scalars show: whether the probe or the program writes it, and its
/// meaning.
#pragma once

#include <string>

namespace nanquest::viewer {

/// A scalar that the probe writes in every row.
struct KnownColumn {
  const char *name, *title;
  bool factors;  ///< shown by factors: a logarithmic axis
};
inline constexpr KnownColumn kKnownColumns[] = {{"loss", "Loss", false},
                                                {"grad_norm", "Gradient norm", true},
                                                {"scale", "Loss scale", true},
                                                {"lr", "Learning rate", false}};

/// The one of them that has this name; null for others.
const KnownColumn* known_column(const std::string& name);
/// The name of a column for people: "Held-out loss" for what the trainer writes as "eval_loss"; a program's
/// own name stays as it is.
std::string title_of_column(const std::string& name);
/// True for the probe's internal columns ("gate", "resident"), which are shown elsewhere or not at all.
bool is_own_column(const std::string& name);
/// True for a reading of the clock ("tokens_per_second", "step_time", "eta"): it differs in every run.
bool is_clock_column(const std::string& name);

}  // namespace nanquest::viewer
