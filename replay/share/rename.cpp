// Names that a person gave: of modules, their types, weights, functions. Parts of a path are renamed one by
// one, so that nesting, and which series belongs to which weight, remains visible.
#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "probe/snapshot/scalars.h"
#include "probe/trace/names.h"
#include "replay/share/redact.h"

namespace nanquest {
namespace {

bool is_number(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Shorter names ("x", "w") appear in any text.
constexpr std::size_t kShortestName = 4;

/// Names that a replay uses as settings, and names of LibTorch itself.
bool is_plain_setting(const std::string& key) {
  return key == "torch_version" || key == "num_threads" || key == "deterministic_algorithms";
}

/// Operators of LibTorch and of nanquest; others have names that their authors gave.
bool is_own_operator(const std::string& name) {
  static const std::set<std::string> own = {
      "aten",      "prim",        "prims",    "c10d", "_c10d_functional", "nanquest",
      "quantized", "torchvision", "inductor", "fsdp", "c10d_functional"};
  return own.count(name.substr(0, name.find("::"))) != 0;
}

/// The new name of a node between two.
constexpr std::string_view kAfter = "accumulation after ";

/// "MulBackward0" is LibTorch's; a Function of a program is "MineBackward".
bool is_own_node(const std::string& node) {
  const bool plain =
      std::all_of(node.begin(), node.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (node == "AccumulateGrad" || node == "CopySlices") return true;
  return plain && !node.empty() && std::isdigit(static_cast<unsigned char>(node.back())) != 0;
}

}  // namespace

std::string Redactor::module_name(const std::string& path) {
  if (!asked(Private::names)) return path;
  std::string renamed;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const std::string part = path.substr(start, end - start);
    if (start > 0) renamed += '.';
    if (is_number(part))
      renamed += part;
    else
      renamed += words_.try_emplace(part, "m" + std::to_string(words_.size() + 1)).first->second;
    start = end + 1;
  }
  return renamed;
}

void Redactor::rename_all() {
  std::map<std::string, std::string> tensors, types, nodes, operators;
  const auto numbered = [](std::map<std::string, std::string>& known, const std::string& name,
                           const char* what) {
    return known.try_emplace(name, what + std::to_string(known.size() + 1)).first->second;
  };
  for (ModuleRow& module : doc_.modules) {
    module.path = module_name(module.path);
    if (!module.type.empty()) module.type = numbered(types, module.type, "Type");
  }
  const auto rename = [&](std::vector<NamedTensor>& rows, const char* what) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string name = what ? what + std::to_string(i) : module_name(rows[i].name);
      tensors.try_emplace(rows[i].name, name);
      if (rows[i].slot != kNone) {
        std::string& slot = doc_.slots[static_cast<std::size_t>(rows[i].slot)].name;
        tensors.try_emplace(slot, name);
      }
      rows[i].name = name;
    }
  };
  rename(doc_.parameters, nullptr);
  rename(doc_.buffers, nullptr);
  rename(doc_.optimizer, "state ");
  rename(doc_.batch, "input ");
  for (Slot& slot : doc_.slots)
    if (!slot.name.empty()) slot.name = numbered(tensors, slot.name, "tensor ");
  std::string& culprit = doc_.culprit.tensor_name;
  if (!culprit.empty()) culprit = numbered(tensors, culprit, "tensor ");
  for (SeriesTable& table : doc_.history)
    for (std::string& column : table.columns)
      if (column != "norm" && !is_probe_column(column)) column = module_name(column);
  for (OpRow& op : doc_.ops) {
    const std::size_t name = op.node.starts_with(kAfter) ? kAfter.size() : 0;
    if (const std::string node = op.node.substr(name); !node.empty() && !is_own_node(node))
      op.node = op.node.substr(0, name) + numbered(nodes, node, "Function");
    if (!is_own_operator(op.name)) op.name = numbered(operators, op.name, "custom::operator");
  }
  // A setting or variable that contains one of them would reveal it.
  std::set<std::string> given;
  for (const std::map<std::string, std::string>* known : {&tensors, &types, &nodes, &operators, &words_})
    for (const auto& [name, other] : *known)
      if (name.size() >= kShortestName) given.insert(name);
  for (auto* entries : {&doc_.config, &doc_.environment})
    std::erase_if(*entries, [&](const auto& entry) {
      return !is_sharing_key(entry.first) && !is_plain_setting(entry.first) &&
             std::any_of(given.begin(), given.end(), [&](const std::string& name) {
               return (entry.first + "=" + entry.second).find(name) != std::string::npos;
             });
    });
  // Paths in the file contain names too.
  std::size_t number = 0;
  for (auto& [path, target] : paths_)
    if (opaque_op(path) == kNone) target = path.substr(0, path.find('/')) + "/" + std::to_string(number++);
  each_path(doc_, [&](std::string& path) {
    if (const auto known = paths_.find(path); known != paths_.end()) path = known->second;
  });
}

}  // namespace nanquest
