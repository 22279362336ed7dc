#include "probe/observe/module_scope.h"

#include <vector>

#include "probe/observe/nvtx.h"

namespace nanquest {
namespace {

struct ScopeStack {
  std::string path;
  std::vector<std::string> replaced;  // paths to go back to, of push_module
  std::vector<std::string> types;
};

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
  nvtx_push(s.path.c_str());
}

ModuleScope::~ModuleScope() {
  nvtx_pop();
  ScopeStack& s = stack();
  s.path.resize(length_before_);
  s.types.pop_back();
}

void push_module(std::string_view whole_path, std::string_view type) {
  ScopeStack& s = stack();
  s.replaced.push_back(std::move(s.path));
  s.path = whole_path;
  s.types.emplace_back(type);
  nvtx_push(s.path.c_str());
}

void pop_module() {
  ScopeStack& s = stack();
  if (s.replaced.empty()) return;
  nvtx_pop();
  s.path = std::move(s.replaced.back());
  s.replaced.pop_back();
  s.types.pop_back();
}

std::string_view current_module_path() { return stack().path; }

std::string_view current_module_type() {
  const ScopeStack& s = stack();
  return s.types.empty() ? std::string_view{} : std::string_view{s.types.back()};
}

}  // namespace nanquest
