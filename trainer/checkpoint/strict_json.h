/// JSON of files from outside. Inside this library only: it shows nlohmann's type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nanquest::trainer {

/// What is wrong with a file from outside; thrown and caught inside one public function.
struct BadFile {
  std::string what;
};

/// The object that `text` is. Refuses (BadFile) what nlohmann would quietly accept: a key given twice,
/// nesting deeper than `deepest`. `whole` is what errors call the text: "the header".
nlohmann::json parse_strictly(const std::string& text, const std::string& whole, int deepest);

}  // namespace nanquest::trainer
