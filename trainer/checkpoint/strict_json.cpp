#include "trainer/checkpoint/strict_json.h"

#include <set>
#include <vector>

namespace nanquest::trainer {

using nlohmann::json;

json parse_strictly(const std::string& text, const std::string& whole, int deepest) {
  std::vector<std::set<std::string>> keys;
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) throw BadFile{whole + " is nested too deeply"};
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw BadFile{"the name \"" + parsed.get<std::string>().substr(0, 80) + "\" is given twice"};
    return true;
  };
  json object = json::parse(text, watch, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) throw BadFile{whole + " is not a JSON object"};
  return object;
}

}  // namespace nanquest::trainer
