// What Python calls: operators of the library `nanquest` for everything that takes tensors
// (torch.ops.nanquest.…), plain C functions for what runs at every module call.
#include <torch/library.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "probe/attach/options.h"
#include "probe/attach/session.h"
#include "probe/observe/module_scope.h"

namespace nanquest::attach {
namespace {

std::unique_ptr<AttachSession>& session() {
  // Leaked on purpose: LibTorch may be gone before static destructors run.
  static auto* one = new std::unique_ptr<AttachSession>();
  return *one;
}

std::string to_json(const Door& door) {
  std::string summary = door.summary;
  const std::string trouble = session()->trouble();
  if (!trouble.empty()) summary += (summary.empty() ? "" : "; ") + trouble;
  if (summary.empty() && !door.skip) return "";
  return nlohmann::json{
      {"incident", door.incident}, {"skip", door.skip}, {"summary", summary}, {"file", door.file}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string start(const std::string& json) {
  if (session()) return "nanquest is attached already";
  auto options = parse_options(json);
  if (!options) return options.error().text();
  auto made = AttachSession::start(std::move(options).value());
  if (!made) return made.error().text();
  session() = std::move(made).value();
  return "";
}

void name_tensor(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  if (!session()) return;
  if (kind == "parameter")
    session()->name_parameter(name, tensor);
  else if (kind == "buffer")
    session()->name_buffer(name, tensor);
  else if (kind == "state")
    session()->name_state(name, tensor);
  else if (kind == "batch")
    session()->name_batch(name, tensor);
}

std::string begin_forward() {
  return session() ? to_json(session()->begin_forward()) : "";
}
std::string before_update(double lr, double loss_scale, bool scale_overflow) {
  return session() ? to_json(session()->before_update({lr, loss_scale, scale_overflow})) : "";
}
std::string after_update() {
  return session() ? to_json(session()->after_update()) : "";
}
std::int64_t incidents() {
  return session() ? session()->incidents() : 0;
}
std::int64_t step() {
  return session() ? session()->step() : 0;
}
std::int64_t steps_made() {
  return session() ? session()->steps_made() : 0;
}
void samples(std::vector<std::string> ids) {
  if (session()) session()->set_samples(std::move(ids));
}

bool record_step() {
  return session() && session()->record_step();
}

std::string stop(const std::string& outcome) {
  if (!session()) return "";
  const Status ended = session()->finish(outcome);
  session().reset();
  return ended ? "" : ended.error().text();
}

}  // namespace

TORCH_LIBRARY(nanquest, m) {
  m.def("start(str options) -> str", &start);
  m.def("stop(str outcome) -> str", &stop);
  m.def("name_tensor(str kind, str name, Tensor tensor) -> ()", &name_tensor);
  m.def("begin_forward() -> str", &begin_forward);
  m.def("before_update(float lr, float loss_scale, bool scale_overflow) -> str", &before_update);
  m.def("after_update() -> str", &after_update);
  m.def("incidents() -> int", &incidents);
  m.def("step() -> int", &step);
  m.def("steps_made() -> int", &steps_made);
  m.def("record_step() -> bool", &record_step);
  m.def("samples(str[] ids) -> ()", &samples);
}

}  // namespace nanquest::attach

extern "C" {
/// A module's forward begins: `path` and `type` are UTF-8 and copied.
__attribute__((visibility("default"))) void nanquest_push(const char* path, const char* type) {
  nanquest::push_module(path, type);
}
/// A module's forward ends.
__attribute__((visibility("default"))) void nanquest_pop() {
  nanquest::pop_module();
}
}
