#include "trainer/config/setting_list.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

namespace nanquest::trainer {

std::string Setting::text() const {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, TextValue>) {
          return v.text();
        } else if constexpr (std::is_same_v<T, bool*>) {
          return *v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string*>) {
          return *v;
        } else {
          char text[40];
          if constexpr (std::is_same_v<T, double*>)
            return {text, std::to_chars(text, text + sizeof text, *v, std::chars_format::general).ptr};
          else
            return {text, std::to_chars(text, text + sizeof text, *v).ptr};
        }
      },
      value);
}

void SettingList::group(const std::string& name) {
  const auto found = std::find(groups_.begin(), groups_.end(), name);
  group_ = static_cast<std::size_t>(found - groups_.begin());
  if (found == groups_.end()) groups_.push_back(name);
}

Setting& SettingList::insert(Setting setting) {
  setting.group = group_ < groups_.size() ? groups_[group_] : "";
  const auto later = std::find_if(settings_.rbegin(), settings_.rend(), [&](const Setting& s) {
                       const auto at = std::find(groups_.begin(), groups_.end(), s.group);
                       return static_cast<std::size_t>(at - groups_.begin()) <= group_;
                     }).base();
  return *settings_.insert(later, std::move(setting));
}

void SettingList::incidental(std::initializer_list<std::string_view> keys) {
  for (Setting& s : settings_)
    if (std::find(keys.begin(), keys.end(), s.key) != keys.end()) s.incidental = true;
}

Status SettingList::check() const {
  for (const auto& question : checks_)
    if (Status s = question(); !s) return s;
  return {};
}

std::map<std::string, std::string> SettingList::as_text() const {
  std::map<std::string, std::string> text;
  for (const Setting& s : settings_) text[s.key] = s.text();
  return text;
}

std::map<std::string, std::string> SettingList::training() const {
  std::map<std::string, std::string> text;
  for (const Setting& s : settings_)
    if (!s.incidental) text[s.key] = s.text();
  return text;
}

}  // namespace nanquest::trainer
