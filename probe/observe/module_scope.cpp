#include "probe/observe/module_scope.h"

#include <vector>

#include "probe/observe/nvtx.h"

namespace nanquest {
namespace {

struct ScopeStack {
  std::string path;
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

std::string_view current_module_path() { return stack().path; }

std::string_view current_module_type() {
  const ScopeStack& s = stack();
  return s.types.empty() ? std::string_view{} : std::string_view{s.types.back()};
}

}  // namespace nanquest
