/// Room trainer/config: settings, each declared by the part that it belongs to.
///
///     struct ScheduleOptions { double peak = 3e-4; };
///     void declare(SettingList& list, ScheduleOptions& o) {
///       list.group("Optimizer");
///       list.add("lr", o.peak, "peak learning rate");
///       list.check([&o] { return check(o); });
///     }
///
/// A program adds its parts to one list; its command line, config file, --help and manifest are made from
/// that list. The list points into the parts' structs: they must outlive it. It does not print, parse a
/// command line, or know tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// The words for the values of an enumeration, in the order in which help shows them.
template <class E>
using Words = std::span<const std::pair<E, std::string_view>>;

/// The value of `word`; nullopt if there is none.
template <class E>
std::optional<E> value_of(std::string_view word, Words<E> words) {
  for (const auto& [value, text] : words)
    if (text == word) return value;
  return std::nullopt;
}

/// The word for `value`; "" if it has none.
template <class E>
std::string word_of(E wanted, Words<E> words) {
  for (const auto& [value, text] : words)
    if (value == wanted) return std::string(text);
  return "";
}

/// A value that is given as text and kept as something else.
struct TextValue {
  std::function<Status(const std::string&)> set;  ///< `usage` if the text is not understood
  std::function<std::string()> text;
  std::vector<std::string> words = {};  ///< all that may be given; empty = `set` decides
  bool repeated = false;                ///< may be given several times, `set` is called for each
};

/// One setting. Its default is the content of `value` when it is declared.
struct Setting {
  std::string key;          ///< as on the command line, without the leading dashes: "warmup-ratio"
  std::string help, group;  ///< one sentence; the heading it stands under
  std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, TextValue> value;
  /// Changes nothing of what is trained (a path, how often to save), or is compared in another way (the
  /// model's shape): a run may be resumed with another value.
  bool incidental = false;
  std::string type_name = {};  ///< what help calls the value; "" = by its type
  bool negatable = false;      ///< a bool that is also offered as "no-KEY"
  std::string alias = {};      ///< another key for it, "" = none

  /// The present value; numbers in the shortest form that reads back as the same number.
  std::string text() const;
};

class SettingList {
 public:
  /// Later settings are listed under this heading. Headings keep the order in which they were first named.
  void group(const std::string& name);

  /// Declares `value` (bool, int, 64-bit integer, double, string or TextValue) under `key`. The reference is
  /// good until the next call.
  template <class T>
  Setting& add(const std::string& key, T& value, const std::string& help) {
    return insert({key, help, {}, &value});
  }
  Setting& add(const std::string& key, TextValue value, const std::string& help) {
    return insert({key, help, {}, std::move(value)});
  }
  /// Declares a value that is given as one of `words` (a table that lives for ever).
  template <class E>
  Setting& add(const std::string& key, E& value, const std::string& help, Words<E> words) {
    TextValue by_word;
    by_word.set = [&value, words, key](const std::string& text) -> Status {
      const std::optional<E> found = value_of(std::string_view(text), words);
      if (!found) return Error{ErrorCode::usage, key + " " + text + " is not known", ""};
      value = *found;
      return {};
    };
    by_word.text = [&value, words] { return word_of(value, words); };
    for (const auto& [unused, text] : words) by_word.words.emplace_back(text);
    return add(key, std::move(by_word), help);
  }

  /// Marks declared settings as incidental.
  void incidental(std::initializer_list<std::string_view> keys);
  /// Adds a check to run once all settings are given.
  void check(std::function<Status()> question) { checks_.push_back(std::move(question)); }
  /// Runs all checks in the order in which they were added; returns the first that fails.
  Status check() const;

  /// By group, inside a group in the order of declaration.
  const std::vector<Setting>& all() const { return settings_; }
  /// Every setting as text, by key.
  std::map<std::string, std::string> as_text() const;
  /// Those that determine what is trained, by key: a resumed run must have them in common with its
  /// checkpoint.
  std::map<std::string, std::string> training() const;

 private:
  Setting& insert(Setting setting);

  std::vector<std::string> groups_;
  std::size_t group_ = 0;
  std::vector<Setting> settings_;
  std::vector<std::function<Status()>> checks_;
};

}  // namespace nanquest::trainer
