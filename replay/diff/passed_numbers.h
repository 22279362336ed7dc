/// passed_numbers: numbers that the program passed to matched ops, where they differ.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "replay/diff/constants.h"
#include "replay/diff/reason.h"

namespace nanquest::diff {

/// The same number of the program, different in A and B, in all ops where it is so.
struct NumberGroup {
  std::string op, name, in_a, in_b;
  std::vector<std::pair<OpId, Constant>> places;  ///< ops of A, with B's number
  bool same(const NumberGroup& other) const {
    return op == other.op && name == other.name && in_a == other.in_a && in_b == other.in_b;
  }
};

/// In the order in which they are met.
std::vector<NumberGroup> number_groups(const Steps& steps);

/// Numbers that differ in ops up to this one of A, but had no part in a finding: "eps of
/// aten::native_layer_norm: 1e-05 in A, 1e-06 in B (2 ops)". `named`: findings so far.
std::vector<std::string> differing_numbers(const Steps& steps, const std::vector<Finding>& named);

}  // namespace nanquest::diff
