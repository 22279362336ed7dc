/// Text as one word of a shell's command line.
#pragma once

#include <string>

namespace nanquest::trainer {

/// `text` as it is if a shell takes it for one word, otherwise in single quotes.
inline std::string shell_word(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\n\"'\\$`*?<>|&;()[]{}~#!") == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

}  // namespace nanquest::trainer
