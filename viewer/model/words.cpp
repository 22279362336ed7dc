#include "viewer/model/words.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace nanquest::viewer {

void make_lower(std::string& text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

Words::Words(const std::string& typed) {
  std::istringstream stream(typed);
  for (std::string word; stream >> word;) {
    make_lower(word);
    words_.push_back(word);
  }
}

bool Words::in(std::string text) const {
  make_lower(text);
  return in_lower(text);
}

bool Words::in_lower(std::string_view text) const {
  return std::ranges::all_of(
      words_, [&](const std::string& word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace nanquest::viewer
