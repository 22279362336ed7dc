/// fields: the members of a small JSON file described once, for its writer and its reader.
///
///     void describe(auto& file, As<Fix> auto& fix) {  // file: JsonWriter or JsonReader
///       file.field("change", fix.change);
///       file.only_if(fix.runs > 0, "runs", fix.runs);
///     }
///     const JsonHead head = {.format = "nanquest.fix", .name = "fix", .version = 1};
///     std::string text = json_text(head, fix);
///     Result<Fix> fix = json_value<Fix>(head, text);
///
/// Members are written in the order of the description. A reader ignores members that are not described,
/// keeps the default of one that is missing or null, and names the path of the first member with an invalid
/// value. Used for verdicts, rehearsals and what the viewer stores (viewer/model/desk).
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "replay/verdict/words.h"

namespace nanquest {

using Json = nlohmann::ordered_json;

/// `T` is `U`, or a const one: what a description takes, to be read or written.
template <class T, class U>
concept As = std::same_as<std::remove_const_t<T>, U>;

/// There is a description of `T`.
template <class T, class File>
concept Described = requires(File& file, T& value) {
  describe(file, value);
};

/// Makes a JSON object. Numbers that are not finite become null.
class JsonWriter {
 public:
  template <class T>
  void field(const char* key, const T& value) {
    json[key] = of(value);
  }
  /// null unless `known`.
  template <class T>
  void or_null(bool known, const char* key, const T& value) {
    json[key] = known ? of(value) : Json(nullptr);
  }
  void text_or_null(const char* key, const std::string& text) { or_null(!text.empty(), key, text); }
  /// Left out unless `written`.
  template <class T>
  void only_if(bool written, const char* key, const T& value) {
    if (written) field(key, value);
  }
  /// A member for other programs that follows from the others: it is not read.
  template <class T>
  void derived(bool written, const char* key, const T& value) {
    only_if(written, key, value);
  }
  /// A number from 0 to 1, in hundredths.
  void fraction(const char* key, double value) { field(key, std::round(value * 100) / 100); }
  /// Members of an object that exists in the file only: `members` gets the writer of that object.
  template <class F>
  void group(const char* key, F&& members, bool known = true) {
    JsonWriter inner;
    if (known) members(inner);
    json[key] = known ? std::move(inner.json) : Json(nullptr);
  }
  /// An object whose keys are numbers.
  template <class N>
  void by_number(const char* key, const std::vector<std::pair<N, std::string>>& texts) {
    Json& object = json[key] = Json::object();
    for (const auto& [number, text] : texts) object[std::to_string(number)] = text;
  }

  Json json = Json::object();

 private:
  template <class T>
  static Json of(const T& value) {
    if constexpr (Described<const T, JsonWriter>) {
      JsonWriter inner;
      describe(inner, value);
      return std::move(inner.json);
    } else if constexpr (std::is_enum_v<T>) {
      return word(value);
    } else if constexpr (std::same_as<T, double>) {
      return std::isfinite(value) ? Json(value) : Json(nullptr);
    } else {
      return value;
    }
  }
  template <class T>
  static Json of(const std::optional<T>& value) {
    return value ? of(*value) : Json(nullptr);
  }
  template <class T>
  static Json of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(of(value));
    return list;
  }
};

/// Reads the members of a JSON object into typed variables.
class JsonReader {
 public:
  /// `wrong` gets an error message for the first member that can't be read.
  JsonReader(const Json& object, std::string path, std::string& wrong)
      : object_(object), path_(std::move(path)), wrong_(wrong) {}

  template <class T>
  void field(const char* key, T& value) {
    if (const Json* json = member(key)) read(key, *json, value);
  }
  template <class T>
  void or_null(bool, const char* key, T& value) {
    field(key, value);
  }
  void text_or_null(const char* key, std::string& text) { field(key, text); }
  template <class T>
  void only_if(bool, const char* key, T& value) {
    field(key, value);
  }
  template <class T>
  void derived(bool, const char*, const T&) {}
  void fraction(const char* key, double& value) {
    const Json* json = member(key);
    if (json && !(json->is_number() && (value = json->get<double>()) >= 0 && value <= 1))
      fail(key, *json, "a number from 0 to 1");
  }
  template <class F>
  void group(const char* key, F&& members, bool = true) {
    if (const Json* json = member(key)) object(key, *json, members);
  }
  template <class N>
  void by_number(const char* key, std::vector<std::pair<N, std::string>>& texts) {
    const Json* json = member(key);
    if (json)
      object(key, *json, [&](JsonReader& inner) {
        for (const auto& [name, text] : json->items()) {
          auto& [number, out] = texts.emplace_back();
          const char* end = name.data() + name.size();
          if (name.empty() || std::from_chars(name.data(), end, number).ptr != end)
            inner.fail(name, text, "under a number");
          else
            inner.read(name, text, out);
        }
      });
  }
  /// Sets the message that the member has an invalid value: "culprit.index: "x" is not a whole number".
  void fail(const std::string& key, const Json& found, const std::string& wanted) const {
    if (!wrong_.empty()) return;
    const std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    wrong_ = path_ + key + ": " + (text.size() > 40 ? text.substr(0, 40) + "…" : text) + " is not " + wanted;
  }

 private:
  const Json* member(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  template <class F>
  void object(const std::string& key, const Json& json, F&& members) {
    if (!json.is_object()) return fail(key, json, "an object");
    JsonReader inner(json, path_ + key + ".", wrong_);
    members(inner);
  }
  template <class T>
  void read(const std::string& key, const Json& json, T& value) {
    if constexpr (Described<T, JsonReader>) {
      object(key, json, [&](JsonReader& inner) { describe(inner, value); });
    } else if (!scalar(json, value)) {
      fail(key, json, wanted(value));
    }
  }
  template <class T>
  void read(const std::string& key, const Json& json, std::optional<T>& value) {
    read(key, json, value.emplace());
  }
  template <class T>
  void read(const std::string& key, const Json& json, std::vector<T>& values) {
    if (!json.is_array()) return fail(key, json, "a list");
    for (const Json& one : json) {
      T& value = values.emplace_back();
      if constexpr (std::same_as<T, double>) {  // as JsonWriter writes numbers that are not finite
        if (one.is_null()) value = std::nan("");
        if (one.is_null()) continue;
      }
      read(key + "[" + std::to_string(values.size() - 1) + "]", one, value);
    }
  }

  // scalar(json, out): true if `json` holds a value for `out`; `wanted(out)` says which kind is expected.
  static bool scalar(const Json& j, std::string& out) {
    return j.is_string() && (out = j.get<std::string>(), true);
  }
  static bool scalar(const Json& j, double& out) { return j.is_number() && (out = j.get<double>(), true); }
  static bool scalar(const Json& j, bool& out) { return j.is_boolean() && (out = j.get<bool>(), true); }
  template <std::integral T>
  static bool scalar(const Json& j, T& out) {
    if (!j.is_number_integer()) return false;
    if (j.is_number_unsigned() ? !std::in_range<T>(j.get<std::uint64_t>())
                               : !std::in_range<T>(j.get<std::int64_t>()))
      return false;
    out = j.get<T>();
    return true;
  }
  template <class E>
  requires std::is_enum_v<E>
  static bool scalar(const Json& j, E& out) {
    const auto value = j.is_string() ? from_word<E>(j.get_ref<const std::string&>()) : std::nullopt;
    if (value) out = *value;
    return value.has_value();
  }
  static std::string wanted(const std::string&) { return "a text"; }
  static std::string wanted(double) { return "a number"; }
  static std::string wanted(bool) { return "true or false"; }
  template <std::integral T>
  static std::string wanted(T) {
    return std::is_unsigned_v<T> ? "a count" : "a whole number";
  }
  template <class E>
  requires std::is_enum_v<E>
  static std::string wanted(E) {
    std::string text;
    for (const Word<E>& w : words<E>())
      if (!w.word.empty()) text.append(text.empty() ? "one of " : ", ").append(w.word);
    return text;
  }

  const Json& object_;
  std::string path_;
  std::string& wrong_;
};

/// What a file begins with, and the words of its errors.
struct JsonHead {
  const char* format;      ///< "nanquest.verdict"
  const char* name;        ///< "verdict": errors begin with it
  std::int64_t version;    ///< written; all earlier versions are read
  const char* again = "";  ///< a hint: how to make such a file again
};

/// The file's content: `head`, then `value` as it is described; indented, ends with a newline. Bytes that are
/// no UTF-8 become U+FFFD.
template <class T>
std::string json_text(const JsonHead& head, const T& value) {
  JsonWriter file;
  file.field("format", std::string(head.format));
  file.field("version", head.version);
  describe(file, value);
  return file.json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Reads what `json_text` wrote. `bad_file` if it is no file of this format, of a newer version, or a member
/// has an invalid value.
template <class T>
Result<T> json_value(const JsonHead& head, const std::string& text) {
  const auto bad = [&](const std::string& message, const std::string& hint) {
    return Error{ErrorCode::bad_file, std::string(head.name) + ": " + message, hint};
  };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad("not a JSON object", head.again);
  std::string wrong, format;
  std::int64_t version = 0;
  JsonReader file(json, "", wrong);
  file.field("format", format);
  if (format != head.format) return bad("\"format\" is not \"" + std::string(head.format) + "\"", head.again);
  file.field("version", version);
  if (version < 1) return bad("it has no version", head.again);
  if (version > head.version)
    return bad("of version " + std::to_string(version) + ", this program knows version " +
                   std::to_string(head.version),
               std::string("use a newer nanquest, or ") + head.again);
  T value;
  describe(file, value);
  if (!wrong.empty()) return bad(wrong, head.again);
  return value;
}

}  // namespace nanquest
