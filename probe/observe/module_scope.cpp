#include "probe/observe/module_scope.h"

#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "probe/observe/nvtx.h"

namespace nanquest {
namespace {

struct ScopeStack {
  std::string path;
  std::vector<std::string> replaced;  // paths to restore, for push_module
  std::vector<std::string> types;
  std::vector<const ModuleName*> names;  // names per scope; null until first requested
};

const ModuleName* find_or_add(std::string_view path, std::string_view type) {
  static std::mutex mutex;
  // Leaked on purpose: records that outlive static destructors refer to them.
  static auto* all = new std::map<std::pair<std::string, std::string>, ModuleName>();
  const std::lock_guard lock(mutex);
  ModuleName name{std::string(path), std::string(type)};
  std::pair<std::string, std::string> key(name.path, name.type);
  return &all->try_emplace(std::move(key), std::move(name)).first->second;
}

/// The pair's unique entry; allocates only when a pair is new.
const ModuleName* module_name(std::string_view path, std::string_view type) {
  constexpr std::size_t kPlaces = 1024;
  constinit thread_local const ModuleName* places[kPlaces]{};
  const ModuleName*& place = places[std::hash<std::string_view>{}(path) % kPlaces];
  if (!place || place->path != path || place->type != type) place = find_or_add(path, type);
  return place;
}

ScopeStack& stack() {
  thread_local ScopeStack s;
  return s;
}

}  // namespace

ModuleScope::ModuleScope(std::string_view name, std::string_view type) {
  ScopeStack& s = stack();
  length_before_ = s.path.size();
  if (!s.path.empty() && !name.empty()) s.path += '.';
  s.path += name;
  s.types.emplace_back(type);
  s.names.push_back(nullptr);
  nvtx_push(s.path.c_str());
}

ModuleScope::~ModuleScope() {
  nvtx_pop();
  ScopeStack& s = stack();
  s.path.resize(length_before_);
  s.types.pop_back();
  s.names.pop_back();
}

void push_module(std::string_view whole_path, std::string_view type) {
  ScopeStack& s = stack();
  s.replaced.push_back(std::move(s.path));
  s.path = whole_path;
  s.types.emplace_back(type);
  s.names.push_back(nullptr);
  nvtx_push(s.path.c_str());
}

void pop_module() {
  ScopeStack& s = stack();
  if (s.replaced.empty()) return;
  nvtx_pop();
  s.path = std::move(s.replaced.back());
  s.replaced.pop_back();
  s.types.pop_back();
  s.names.pop_back();
}

const ModuleName* current_module() {
  ScopeStack& s = stack();
  if (s.names.empty() || s.path.empty()) return nullptr;
  const ModuleName*& name = s.names.back();
  if (!name) name = module_name(s.path, s.types.back());
  return name;
}

std::string_view current_module_path() {
  return stack().path;
}

std::string_view current_module_type() {
  const ScopeStack& s = stack();
  return s.types.empty() ? std::string_view{} : std::string_view{s.types.back()};
}

}  // namespace nanquest
