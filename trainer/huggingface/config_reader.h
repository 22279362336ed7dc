/// Values of a config.json by key, with errors that name the key. Inside this room only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Thrown by the functions below, caught inside one public function.
struct Refused {
  Error error;
};

/// Largest size of a settings file of a model or an adapter, in bytes; larger files are refused.
inline constexpr std::size_t kLargestConfig = std::size_t{16} << 20;

/// One object of the file. A key whose value is null counts as absent, except for keys where null means
/// "none".
class ConfigReader {
 public:
  /// `where` is the prefix of a key in errors: "DIR/config.json: " or "DIR/config.json: rope_scaling.".
  ConfigReader(const nlohmann::json& object, std::string where)
      : object_(&object), where_(std::move(where)) {}

  bool has(const std::string& key) const;
  /// It exists, and is null.
  bool none(const std::string& key) const { return object_->contains(key) && !has(key); }
  /// Values between 1 and 2³⁰; the first refuses an absent key.
  std::int64_t size(const std::string& key) const;
  std::int64_t size(const std::string& key, std::int64_t if_absent) const;
  /// A finite number, at least `lowest`.
  double number(const std::string& key, double if_absent, double lowest = 0) const;
  bool flag(const std::string& key, bool if_absent) const;
  std::string text(const std::string& key, const std::string& if_absent) const;
  /// Ids of tokens: a number, a list of them, or none.
  std::vector<std::int64_t> tokens(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  /// The object under `key`, which must exist.
  ConfigReader inside(const std::string& key) const;
  std::vector<std::string> keys() const;

  /// Refuses what this program can't compute: "hidden_act "mish" is not known (known: silu, …)".
  [[noreturn]] void unknown(const std::string& key, const std::string& value, const std::string& known) const;
  /// Refuses an invalid file.
  [[noreturn]] void wrong(const std::string& what) const;

  /// The value of `key`'s word in `words`, a list of pairs of value and word.
  template <class E, class Words>
  E word(const std::string& key, const std::string& if_absent, const Words& words) const {
    const std::string given = text(key, if_absent);
    std::string known;
    for (const auto& [value, name] : words) {
      if (name == given) return value;
      known.append(known.empty() ? "" : ", ").append(name);
    }
    unknown(key, given, known);
  }

 private:
  const nlohmann::json* find(const std::string& key) const;

  const nlohmann::json* object_;
  std::string where_;
};

}  // namespace nanquest::trainer
