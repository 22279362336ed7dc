/// setting_change: the syntax of `--set`, for every program that has it: KEY=VALUE, or KEY=*FACTOR for a
/// number.
///
///     Result<std::vector<SettingChange>> changes = parse_settings("lr=*0.5,weight_decay=0.1");
///     // changes->at(0): key "lr", value "*0.5", factor, number 0.5
///
/// Which keys there are, and what they mean, is defined by the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// One setting to change.
struct SettingChange {
  std::string key;                    ///< with dashes: "weight-decay"
  std::string value = {};             ///< as typed, not empty
  bool factor = false;                ///< `value` begins with *
  std::optional<double> number = {};  ///< of `value`, without the *; nothing if it is no finite number

  /// True for a finite number that is no factor.
  std::optional<double> plain() const { return factor ? std::nullopt : number; }
};

/// One change: everything after the first = is its value. `usage` without a key or a value.
Result<SettingChange> parse_setting(const std::string& text);
/// Several, joined by commas; a value may be a list: "skip=3,4,lr=*0.5" is two.
Result<std::vector<SettingChange>> parse_settings(const std::string& text);

}  // namespace nanquest
