/// What the names of the columns tell that a run's scalars have: whose a column is, and what it is good for.
#pragma once

#include <string>

namespace nanquest::viewer {

/// A scalar that the probe writes in every row.
struct KnownColumn {
  const char *name, *title;
  bool factors;  ///< told by factors: a logarithmic axis
};
inline constexpr KnownColumn kKnownColumns[] = {{"loss", "Loss", false},
                                                {"grad_norm", "Gradient norm", true},
                                                {"scale", "Loss scale", true},
                                                {"lr", "Learning rate", false}};

/// The one of them that has this name; null for others.
const KnownColumn* known_column(const std::string& name);
/// How a column is called where people read it: "Held-out loss" for what the trainer writes as "eval_loss"; a
/// name of the program's own stays as it is.
std::string title_of_column(const std::string& name);
/// True for what the probe notes for itself ("gate", "measured"): it is told elsewhere, or to nobody.
bool is_own_column(const std::string& name);
/// True for a reading of the clock ("tokens_per_second", "step_time", "eta"): it is another in every run.
bool is_clock_column(const std::string& name);

}  // namespace nanquest::viewer
