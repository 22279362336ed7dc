/// What a snapshot's environment holds of the settings of a program's optimizers: "optimizer.0" and so on, in
/// the order of their first updates, each a JSON array with one object a parameter group: names and numbers
/// as text.
///
///     optimizer.0: [{"betas[0]": "0.9", "betas[1]": "0.999", "eps": "1e-08", "weight_decay": "0.01"}]
#pragma once

#include <string_view>

namespace nanquest {

inline constexpr std::string_view kOptimizerKey = "optimizer.";

}  // namespace nanquest
