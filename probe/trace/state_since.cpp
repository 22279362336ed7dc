#include "probe/trace/state_since.h"

#include <algorithm>
#include <cstdlib>

namespace nanquest {
namespace {

constexpr std::string_view kModel = "model_since.", kWeight = "weight_since.", kLoaded = " loaded",
                           kBut = " loaded but ";
constexpr const char* kBeginning = "bad_from_beginning";

/// Whether `name` is one of those in "a;b;c".
bool is_listed(std::string_view list, std::string_view name) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(';', at), list.size());
    if (list.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::optional<StateSince> state_since(const SnapshotDoc& doc, std::string_view kind,
                                      const std::string& name) {
  const auto& environment = doc.environment;
  // The note of the model with the longest beginning that fits.
  const std::string* note = nullptr;
  std::string_view prefix;
  for (auto it = environment.lower_bound(std::string(kModel));
       it != environment.end() && it->first.starts_with(kModel); ++it) {
    const std::string_view begins = std::string_view(it->first).substr(kModel.size());
    if (!name.starts_with(begins) || (note && begins.size() < prefix.size())) continue;
    note = &it->second;
    prefix = begins;
  }
  if (!note) return std::nullopt;
  StateSince since{std::atoll(note->c_str())};
  if (const std::size_t but = note->find(kBut); but != std::string::npos)
    since.loaded = !is_listed(std::string_view(*note).substr(but + kBut.size()), name.substr(prefix.size()));
  else
    since.loaded = note->ends_with(kLoaded);
  if (const auto later = environment.find(std::string(kWeight) + name); later != environment.end())
    since = {std::atoll(later->second.c_str())};
  if (const auto bad = environment.find(kBeginning); bad != environment.end())
    since.from_beginning = is_listed(bad->second, std::string(kind) + " " + name);
  return since;
}

bool tells_of_state(std::string_view key) {
  return key.starts_with(kModel) || key.starts_with(kWeight) || key == kBeginning;
}

void note_beginning(SnapshotDoc& doc, const std::set<std::string>& bad) {
  std::string names;
  for (const std::string& name : bad) names += (names.empty() ? "" : ";") + name;
  if (!names.empty()) doc.environment[kBeginning] = names;
}

}  // namespace nanquest
