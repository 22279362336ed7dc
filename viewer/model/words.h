/// Words: what a person typed to find something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nanquest::viewer {

class Words {
 public:
  /// Cuts at white space.
  explicit Words(const std::string& typed);
  /// True if every word is somewhere in the text, ignoring case; also if there are no words.
  bool in(std::string text) const;
  /// The same of a text that is in lower case.
  bool in_lower(std::string_view text) const;
  /// True if there are none.
  bool none() const { return words_.empty(); }

 private:
  std::vector<std::string> words_;
};

/// ASCII letters made lower case, as Words compares.
void make_lower(std::string& text);

}  // namespace nanquest::viewer
