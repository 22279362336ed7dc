#include "probe/snapshot/sharing.h"

#include <sstream>

namespace nanquest {
namespace {

constexpr const char* kPrefix = "shared.";
constexpr const char* kRedacted = "shared.redacted";
constexpr const char* kLeftOut = "shared.left_out";
constexpr const char* kVerdict = "shared.verdict_before";
constexpr const char* kWrong = "shared.verdict_is_wrong";

std::string text_of(const SnapshotDoc& doc, const char* key) {
  const auto entry = doc.config.find(key);
  return entry == doc.config.end() ? "" : entry->second;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : between).append(part);
  return text;
}

}  // namespace

Sharing sharing_of(const SnapshotDoc& doc) {
  return {lines_of(text_of(doc, kRedacted)), lines_of(text_of(doc, kLeftOut)), text_of(doc, kVerdict),
          text_of(doc, kWrong)};
}

void set_sharing(SnapshotDoc& doc, const Sharing& sharing) {
  const auto set = [&](const char* key, const std::string& text) {
    if (text.empty())
      doc.config.erase(key);
    else
      doc.config[key] = text;
  };
  set(kRedacted, joined(sharing.redacted, "\n"));
  set(kLeftOut, joined(sharing.left_out, "\n"));
  set(kVerdict, sharing.verdict);
  set(kWrong, sharing.wrong);
}

std::vector<std::pair<std::string, std::string>> sharing_lines(const Sharing& sharing) {
  std::vector<std::pair<std::string, std::string>> lines;
  if (!sharing.wrong.empty()) lines.emplace_back("corrected", "the verdict is wrong: " + sharing.wrong);
  if (!sharing.redacted.empty()) lines.emplace_back("redacted", joined(sharing.redacted, "; "));
  if (!sharing.left_out.empty()) lines.emplace_back("left out", joined(sharing.left_out, "; "));
  if (!sharing.verdict.empty()) lines.emplace_back("original", "its verdict: " + sharing.verdict);
  return lines;
}

bool is_sharing_key(const std::string& key) {
  return key.starts_with(kPrefix);
}

}  // namespace nanquest
