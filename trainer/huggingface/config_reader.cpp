#include "trainer/huggingface/config_reader.h"

#include <cmath>

namespace nanquest::trainer {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;
constexpr std::size_t kShown = 60;

std::string shown(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, kShown);
}

}  // namespace

const nlohmann::json* ConfigReader::find(const std::string& key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::has(const std::string& key) const {
  return find(key) != nullptr;
}

void ConfigReader::unknown(const std::string& key, const std::string& value, const std::string& known) const {
  throw Refused{{ErrorCode::unsupported, where_ + key + " \"" + value.substr(0, kShown) + "\" is not known",
                 "known: " + known}};
}

void ConfigReader::wrong(const std::string& what) const {
  throw Refused{{ErrorCode::bad_file, where_ + what, "give the config.json of a model as it was published"}};
}

std::int64_t ConfigReader::size(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) wrong(key + " is missing");
  if (!value->is_number_integer() || *value < 1 || *value > kLargestSize)
    wrong(key + " is " + shown(*value) + ", not a number from 1 to " + std::to_string(kLargestSize));
  return value->get<std::int64_t>();
}

std::int64_t ConfigReader::size(const std::string& key, std::int64_t if_absent) const {
  return has(key) ? size(key) : if_absent;
}

double ConfigReader::number(const std::string& key, double if_absent, double lowest) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return if_absent;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() < lowest)
    wrong(key + " is " + shown(*value) + ", not a finite number of at least " + std::to_string(lowest));
  return value->get<double>();
}

bool ConfigReader::flag(const std::string& key, bool if_absent) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return if_absent;
  if (!value->is_boolean()) wrong(key + " is " + shown(*value) + ", neither true nor false");
  return value->get<bool>();
}

std::string ConfigReader::text(const std::string& key, const std::string& if_absent) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return if_absent;
  if (!value->is_string()) wrong(key + " is " + shown(*value) + ", not a text");
  return value->get<std::string>();
}

std::vector<std::int64_t> ConfigReader::tokens(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  const nlohmann::json list = value->is_array() ? *value : nlohmann::json::array({*value});
  std::vector<std::int64_t> tokens;
  for (const nlohmann::json& one : list) {
    if (!one.is_number_integer()) wrong(key + " holds " + shown(one) + ", not a token");
    tokens.push_back(one.get<std::int64_t>());
  }
  return tokens;
}

std::vector<std::string> ConfigReader::texts(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(key + " is " + shown(*value) + ", not a list");
  std::vector<std::string> texts;
  for (const nlohmann::json& one : *value) {
    if (!one.is_string()) wrong(key + " holds " + shown(one) + ", not a text");
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

ConfigReader ConfigReader::inside(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_object()) wrong(key + " is not an object");
  return {*value, where_ + key + "."};
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_->items()) keys.push_back(key);
  return keys;
}

}  // namespace nanquest::trainer
