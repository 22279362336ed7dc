/// Numbers in sentences.
#pragma once

#include <cstdio>
#include <string>

namespace nanquest::trainer {

/// "0.5", "0.0625", "1e-05": six digits, no zeros behind them.
inline std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace nanquest::trainer
