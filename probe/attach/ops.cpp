// What Python calls: operators of the library `nanquest` for everything that takes tensors
// (torch.ops.nanquest.…), plain C functions for what runs at every module call.
#include <torch/library.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "probe/attach/options.h"
#include "probe/attach/replicas.h"
#include "probe/attach/session.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/step_scope.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

std::unique_ptr<AttachSession>& session() {
  // Leaked on purpose: LibTorch may be gone before static destructors run.
  static auto* one = new std::unique_ptr<AttachSession>();
  return *one;
}

std::string to_json(const StepAnswer& answer) {
  std::string summary = answer.summary;
  append(summary, session()->trouble());
  if (summary.empty() && !answer.skip) return "";
  return nlohmann::json{{"incident", answer.incident},
                        {"stops", answer.stops},
                        {"forecast", answer.forecast},
                        {"step", answer.step},
                        {"skip", answer.skip},
                        {"gradients_bad", answer.gradients_bad},
                        {"scale_overflow", answer.scale_overflow},
                        {"summary", summary},
                        {"file", answer.file}}
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

std::int64_t name_parameter(const std::string& name, const at::Tensor& tensor) {
  return session() ? session()->name_parameter(name, tensor) : -1;
}

void name_tensor(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  if (!session()) return;
  if (kind == "buffer")
    session()->name_buffer(name, tensor);
  else if (kind == "parameter")
    session()->name_parameter_again(name, tensor);
  else if (kind == "state")
    session()->name_state(name, tensor);
  else if (kind == "scale")
    session()->name_scale(name, tensor);
  else if (kind == "batch")
    session()->name_batch(name, tensor);
}

bool between_steps() {
  return session() && session()->between_steps();
}

void begin_aside() {
  if (session()) session()->begin_aside();
}

std::string begin_forward() {
  return session() ? to_json(session()->begin_forward()) : "";
}
std::string before_update(double lr, double loss_scale, bool scale_overflow, std::vector<at::Tensor> weights,
                          std::vector<std::int64_t> numbers, bool gradients_follow) {
  if (!session()) return "";
  return to_json(session()->before_update({lr, loss_scale, scale_overflow},
                                          {std::move(weights), std::move(numbers)}, gradients_follow));
}
std::string judge(double lr, double loss_scale, bool scale_overflow) {
  return session() ? to_json(session()->judge({lr, loss_scale, scale_overflow})) : "";
}
std::string after_update() {
  return session() ? to_json(session()->after_update()) : "";
}
void note_scaled(const at::Tensor& scaled, const at::Tensor& loss) {
  if (session()) session()->note_scaled(scaled, loss);
}
void begin_backward(const std::vector<at::Tensor>& roots, bool accumulates) {
  if (session()) session()->begin_backward(roots, accumulates);
}
void end_backward() {
  if (session()) session()->end_backward();
}
void inner_gradient() {
  if (session()) session()->inner_gradient();
}
void made_by_pass(const at::Tensor& result) {
  if (session()) session()->made_by_pass(result);
}
void gradients_cleared() {
  if (session()) session()->gradients_cleared();
}
std::string clipped(const at::Tensor& norm, std::vector<at::Tensor> weights,
                    std::vector<std::int64_t> numbers) {
  return session() ? to_json(session()->clipped(norm, {std::move(weights), std::move(numbers)})) : "";
}
std::string program_ends(const std::string& raised) {
  return session() ? to_json(session()->program_ends(raised)) : "";
}
std::int64_t incidents() {
  return session() ? session()->incidents() : 0;
}
std::int64_t muted() {
  return session() ? session()->muted() : 0;
}
std::int64_t carried_on() {
  return session() ? session()->carried_on() : 0;
}
std::int64_t step() {
  return session() ? session()->step() : 0;
}
double loss() {
  return session() ? session()->loss() : std::numeric_limits<double>::quiet_NaN();
}
std::int64_t steps_made() {
  return session() ? session()->steps_made() : 0;
}
std::int64_t standing_steps() {
  return session() ? session()->standing_steps() : 0;
}
std::int64_t standing_bytes() {
  return session() ? session()->standing_bytes() : 0;
}
void set_step(std::int64_t number) {
  if (session()) session()->set_step(number);
}
void samples(std::vector<std::string> ids) {
  if (session()) session()->set_samples(std::move(ids));
}

bool record_step() {
  return session() && session()->record_step();
}

void capture(bool begins) {
  if (session()) session()->capture(begins);
}
void graph_ran() {
  if (session()) session()->graph_ran();
}

void pause(bool begins) {
  if (!session()) return;
  begins ? session()->pause() : session()->resume();
}

void note(const std::string& key, const std::string& value) {
  if (session()) session()->note(key, value);
}

void remember(const std::vector<at::Tensor>& buffers) {
  if (session()) session()->remember(buffers);
}
bool put_back() {
  return !session() || session()->put_back();
}
void forget() {
  if (session()) session()->forget();
}
bool remembers() {
  return session() && session()->remembers();
}
std::string spoiled_weight() {
  return session() ? session()->spoiled_weight() : "";
}
std::string widen(const std::vector<at::Tensor>& tensors, bool try_only) {
  return session() ? session()->widen(tensors, try_only) : "the probe is not attached";
}
void keep_wide(bool keep) {
  if (session()) session()->keep_wide(keep);
}

void note_replicas(const std::string& ranks, const std::string& others) {
  if (session()) session()->note_replicas(ranks, others);
}
void replicas_differ(std::int64_t step, const std::vector<std::int64_t>& ranks, const std::string& tensor,
                     const std::string& text) {
  if (session()) session()->replicas_differ({step, {ranks.begin(), ranks.end()}, tensor, text});
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
  m.def("name_parameter(str name, Tensor tensor) -> int", &name_parameter);
  m.def("name_tensor(str kind, str name, Tensor tensor) -> ()", &name_tensor);
  m.def("begin_forward() -> str", &begin_forward);
  m.def("between_steps() -> bool", &between_steps);
  m.def("begin_aside() -> ()", &begin_aside);
  m.def(
      "before_update(float lr, float loss_scale, bool scale_overflow, Tensor[] weights, int[] numbers, "
      "bool gradients_follow) -> str",
      &before_update);
  m.def("judge(float lr, float loss_scale, bool scale_overflow) -> str", &judge);
  m.def("after_update() -> str", &after_update);
  m.def("note_scaled(Tensor scaled, Tensor loss) -> ()", &note_scaled);
  m.def("begin_backward(Tensor[] roots, bool accumulates) -> ()", &begin_backward);
  m.def("end_backward() -> ()", &end_backward);
  m.def("inner_gradient() -> ()", &inner_gradient);
  m.def("made_by_pass(Tensor result) -> ()", &made_by_pass);
  m.def("gradients_cleared() -> ()", &gradients_cleared);
  m.def("clipped(Tensor norm, Tensor[] weights, int[] numbers) -> str", &clipped);
  m.def("program_ends(str raised) -> str", &program_ends);
  m.def("incidents() -> int", &incidents);
  m.def("carried_on() -> int", &carried_on);
  m.def("muted() -> int", &muted);
  m.def("step() -> int", &step);
  m.def("loss() -> float", &loss);
  m.def("steps_made() -> int", &steps_made);
  m.def("standing_steps() -> int", &standing_steps);
  m.def("standing_bytes() -> int", &standing_bytes);
  m.def("capture(bool begins) -> ()", &capture);
  m.def("graph_ran() -> ()", &graph_ran);
  m.def("remember(Tensor[] buffers) -> ()", &remember);
  m.def("put_back() -> bool", &put_back);
  m.def("forget() -> ()", &forget);
  m.def("remembers() -> bool", &remembers);
  m.def("spoiled_weight() -> str", &spoiled_weight);
  m.def("widen(Tensor[] tensors, bool try_only) -> str", &widen);
  m.def("keep_wide(bool keep) -> ()", &keep_wide);
  m.def("hashes_of_parts(Tensor[] tensors, int[] begins, int[] bytes) -> int[]", &hashes_of_parts);
  m.def("note_replicas(str ranks, str others) -> ()", &note_replicas);
  m.def("replicas_differ(int step, int[] ranks, str tensor, str text) -> ()", &replicas_differ);
  m.def("record_step() -> bool", &record_step);
  m.def("pause(bool begins) -> ()", &pause);
  m.def("note(str key, str value) -> ()", &note);
  m.def("set_step(int number) -> ()", &set_step);
  m.def("samples(str[] ids) -> ()", &samples);
}

}  // namespace nanquest::attach

extern "C" {
/// A module's forward begins: `path` and `type` are UTF-8 and copied.
__attribute__((visibility("default"))) void nanquest_push(const char* path, const char* type) {
  nanquest::push_module(path, type);
}
/// What runs now belongs to this phase (1 forward, 3 optimizer) until the next call; returns what was so
/// before.
__attribute__((visibility("default"))) int nanquest_phase(int phase) {
  return static_cast<int>(nanquest::set_phase(static_cast<nanquest::Phase>(phase)));
}
/// A pass of the program's models begins (1), or is over (0): the random numbers drawn in it are the step's.
__attribute__((visibility("default"))) void nanquest_pass(int begins) {
  if (nanquest::attach::session()) nanquest::attach::session()->pass(begins != 0);
}
/// What runs now is of this micro-batch of a pipeline; below 0: of none.
__attribute__((visibility("default"))) void nanquest_micro_batch(int index) {
  if (nanquest::attach::session()) nanquest::attach::session()->set_told_micro_batch(index);
}
/// A module's forward ends.
__attribute__((visibility("default"))) void nanquest_pop() {
  nanquest::pop_module();
}
}
