/// JSON of files from outside. Inside this library only: it shows nlohmann's type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nanquest::trainer {

/// The fault of a file from outside; thrown and caught inside one public function.
struct BadFile {
  std::string what;
};

/// The object in `text`. Refuses (BadFile) what nlohmann would silently accept: a duplicate key, nesting
/// deeper than `deepest`. Errors call the text `whole`: "the header".
nlohmann::json parse_strictly(const std::string& text, const std::string& whole, int deepest);

}  // namespace nanquest::trainer
