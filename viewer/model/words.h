/// Words: what a person typed to find something.
#pragma once

#include <string>
#include <vector>

namespace nanquest::viewer {

class Words {
 public:
  /// Cuts at white space.
  explicit Words(const std::string& typed);
  /// True if every word is somewhere in the text, case ignored; so it is of no words.
  bool in(std::string text) const;
  bool none() const { return words_.empty(); }

 private:
  std::vector<std::string> words_;
};

}  // namespace nanquest::viewer
