/// Module paths for C++ models: which module is running.
///
///     at::Tensor Mlp::forward(at::Tensor x) {
///       nanquest::ModuleScope here("mlp", "Mlp");  // inside another: "blocks.3.mlp"
///       return x.relu();
///     }
#pragma once

#include <string>
#include <string_view>

namespace nanquest {

/// While it exists, ops of this thread belong to `name` inside the enclosing scope. Costs two thread-local
/// string appends (~20 ns); also an NVTX range if a profiler is attached.
class ModuleScope {
 public:
  explicit ModuleScope(std::string_view name, std::string_view type = {});
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  std::size_t length_before_;
};

/// The same for callers that know whole paths and no scopes (hooks of Python modules): the path replaces the
/// previous one until the matching pop. Unmatched pops are ignored.
void push_module(std::string_view whole_path, std::string_view type);
void pop_module();

/// A module path and its type, stored once and never freed.
struct ModuleName {
  std::string path, type;
};

/// The innermost scope of this thread, null outside any. A repeated call in the same scope costs nothing.
const ModuleName* current_module();

/// Path of the innermost scope of this thread, "" outside any. Valid until the scope changes.
std::string_view current_module_path();
/// Type given to the innermost scope, "" if none.
std::string_view current_module_type();

}  // namespace nanquest
