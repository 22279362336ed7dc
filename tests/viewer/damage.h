/// Snapshots that can't be shown: too new, cut off, never completed, or forged to do harm. For the model's
/// tests, for the panels' and for the program's.
#pragma once

#include <string>
#include <vector>

namespace nanquest::viewer::testing {

struct Damage {
  const char* name;
  const char* says;                           ///< what the refusal must hold
  void (*make)(const std::string& snapshot);  ///< changes the file in place
};

const std::vector<Damage>& all_damages();

/// Makes one value of a stored tensor another one. Its table stays as it is: nothing is noticed until the
/// tensor is read.
void spoil_tensor(const std::string& snapshot, const std::string& tensor);

}  // namespace nanquest::viewer::testing
