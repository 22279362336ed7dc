/// fields: the members of a JSON object taken one by one into typed variables; what can't be taken is named.
/// For verdicts and what else is a small JSON file (viewer/model/desk).
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/verdict/words.h"

namespace nanquest::verdict_file {

using Json = nlohmann::json;

// read(json, out): true if `json` holds what `out` can; `expected(out)` says what that would be.
inline bool read(const Json& j, std::string& out) {
  return j.is_string() && (out = j.get<std::string>(), true);
}
inline bool read(const Json& j, double& out) {
  return j.is_number() && (out = j.get<double>(), true);
}
inline bool read(const Json& j, bool& out) {
  return j.is_boolean() && (out = j.get<bool>(), true);
}
template <std::integral T>
bool read(const Json& j, T& out) {
  if (!j.is_number_integer()) return false;
  if (j.is_number_unsigned() ? !std::in_range<T>(j.get<std::uint64_t>())
                             : !std::in_range<T>(j.get<std::int64_t>()))
    return false;
  out = j.get<T>();
  return true;
}
template <class E>
requires std::is_enum_v<E>
bool read(const Json& j, E& out) {
  const auto value = j.is_string() ? from_word<E>(j.get_ref<const std::string&>()) : std::nullopt;
  if (value) out = *value;
  return value.has_value();
}
template <class T>
bool read(const Json& j, std::optional<T>& out) {
  return read(j, out.emplace());
}
template <class T>
bool read(const Json& j, std::vector<T>& out) {
  if (!j.is_array()) return false;
  for (const Json& x : j)
    if (!read(x, out.emplace_back())) return false;
  return true;
}

inline std::string expected(const std::string&) {
  return "a text";
}
inline std::string expected(double) {
  return "a number";
}
inline std::string expected(bool) {
  return "true or false";
}
template <std::integral T>
std::string expected(const T&) {
  return std::is_unsigned_v<T> ? "a count" : "a whole number";
}
template <class E>
requires std::is_enum_v<E> std::string expected(const E&) {
  std::string text;
  for (const Word<E>& w : words<E>())
    if (!w.word.empty()) text.append(text.empty() ? "one of " : ", ").append(w.word);
  return text;
}
template <class T>
std::string expected(const std::optional<T>&) {
  return expected(T{});
}
template <class T>
std::string expected(const std::vector<T>&) {
  return "a list, each " + expected(T{});
}

/// The members of one object of the file. The first that can't be read is kept in `wrong`, by its path.
class Fields {
 public:
  Fields(const Json& object, std::string path, std::string& wrong)
      : object_(object), path_(std::move(path)), wrong_(wrong) {}

  /// Fills `out` if the member is there and not null.
  template <class T>
  void take(const char* key, T& out) const {
    if (const Json* j = member(key); j && !read(*j, out)) fail(key, *j, expected(out));
  }

  /// Calls `f` with the members of a member, if it is there and not null.
  template <class F>
  void object(const char* key, F&& f) const {
    const Json* j = member(key);
    if (!j) return;
    if (j->is_object())
      f(Fields(*j, path_ + key + ".", wrong_));
    else
      fail(key, *j, "an object");
  }

  /// The same for each object of a list.
  template <class F>
  void list(const char* key, F&& f) const {
    const Json* j = member(key);
    if (j && !j->is_array()) return fail(key, *j, "a list");
    for (std::size_t i = 0; j && i < j->size(); ++i) {
      const std::string one = std::string(key).append("[").append(std::to_string(i)).append("]");
      if ((*j)[i].is_object())
        f(Fields((*j)[i], path_ + one + ".", wrong_));
      else
        fail(one, (*j)[i], "an object");
    }
  }

  const Json* member(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void fail(const std::string& key, const Json& found, const std::string& wanted) const {
    if (!wrong_.empty()) return;
    const std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    wrong_ = path_ + key + ": " + (text.size() > 40 ? text.substr(0, 40) + "…" : text) + " is not " + wanted;
  }

 private:
  const Json& object_;
  std::string path_;
  std::string& wrong_;
};

}  // namespace nanquest::verdict_file
