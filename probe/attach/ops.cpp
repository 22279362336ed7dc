// What Python calls: operators of the library `nanquest` for everything that takes tensors
// (torch.ops.nanquest.…), plain C functions for what runs at every module call.
#include <torch/library.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "probe/attach/kept_update.h"
#include "probe/attach/learning.h"
#include "probe/attach/options.h"
#include "probe/attach/replicas.h"
#include "probe/attach/saved.h"
#include "probe/attach/session.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/step_scope.h"
#include "probe/step/one_line.h"
#include "probe/tensor/back_end.h"
#include "probe/tensor/cuda_module.h"
#include "probe/tensor/device_ops.h"
#include "probe/tensor/parallel.h"

namespace nanquest::attach {
namespace {

std::unique_ptr<AttachSession>& session() {
  // Leaked on purpose: LibTorch may be unloaded before static destructors run.
  static auto* one = new std::unique_ptr<AttachSession>();
  return *one;
}

using OwnerFinder = int (*)(const void* memory, std::size_t bytes, char* name, std::size_t room);

OwnerFinder& owner_finder() {
  static OwnerFinder finder = nullptr;
  return finder;
}

Owner found_owner(const c10::Storage& memory) {
  char name[256] = "";
  const int kind = owner_finder()(memory.data(), memory.nbytes(), name, sizeof name);
  return {static_cast<Owner::Kind>(kind), name};
}

/// The step of which there is nothing to tell but that it was recorded; -1 otherwise.
std::int64_t only_recorded(const Facts& told) {
  return told.size() == 1 && told.front().kind == Fact::recorded ? told.front().step : -1;
}

nlohmann::json json_of(const StepAnswer& answer) {
  return {{"incident", answer.incident},
          {"stops", answer.stops},
          {"forecast", answer.forecast},
          {"spike", answer.spike},
          {"spiking", answer.spiking},
          {"step", answer.step},
          {"skip", answer.skip},
          {"gradients_bad", answer.gradients_bad},
          {"scale_overflow", answer.scale_overflow},
          {"withheld", answer.withheld},
          {"only_recorded", only_recorded(answer.told)},
          {"summary", text_of(answer.told)},
          {"file", answer.file}};
}

/// The answer, with those of earlier steps that came late; "" if there is nothing to tell.
std::string to_json(const StepAnswer& answer) {
  std::string summary = text_of(answer.told);
  const std::string trouble = session()->trouble();
  append(summary, trouble);
  const std::vector<StepAnswer> late = session()->late_answers();
  if (summary.empty() && !answer.skip && late.empty()) return "";
  nlohmann::json json = json_of(answer);
  json["summary"] = summary;
  if (!trouble.empty()) json["only_recorded"] = -1;
  json["earlier"] = nlohmann::json::array();
  for (const StepAnswer& each : late) json["earlier"].push_back(json_of(each));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string start(const std::string& json) {
  if (session()) return "nanquest is attached already";
  auto options = parse_options(json);
  if (!options) return options.error().text();
  auto made = AttachSession::start(std::move(options).value());
  if (!made) return made.error().text();
  session() = std::move(made).value();
  if (owner_finder()) session()->find_owners_with(found_owner);
  return "";
}

/// The result of `ask`, in types of operators; without a session 0, false, NaN or "".
template <class R, class Ask>
auto answer(const Ask& ask) {
  AttachSession* const it = session().get();
  if constexpr (std::is_void_v<R>) {
    if (it) ask(*it);
  } else if constexpr (std::is_same_v<R, StepAnswer>) {
    return it ? to_json(ask(*it)) : std::string();
  } else if constexpr (std::is_same_v<R, int>) {
    return std::int64_t{it ? ask(*it) : 0};
  } else if constexpr (std::is_same_v<R, double>) {
    return it ? ask(*it) : std::numeric_limits<double>::quiet_NaN();
  } else {
    return it ? ask(*it) : R();
  }
}

/// `op` is the operator that calls this function of the session, or with the session.
template <auto Function>
struct Of;
template <class R, class... A, R (AttachSession::*Function)(A...)>
struct Of<Function> {
  static auto op(A... args) {
    return answer<R>([&](AttachSession& it) -> R { return (it.*Function)(std::forward<A>(args)...); });
  }
};
template <class R, class... A, R (*Function)(AttachSession&, A...)>
struct Of<Function> {
  static auto op(A... args) {
    return answer<R>([&](AttachSession& it) -> R { return Function(it, std::forward<A>(args)...); });
  }
};
template <class R, R (AttachSession::*Function)() const>
struct Of<Function> {
  static auto op() {
    return answer<R>([](AttachSession& it) -> R { return (it.*Function)(); });
  }
};

std::int64_t name_parameter(const std::string& name, const at::Tensor& tensor) {
  return session() ? session()->name_parameter(name, tensor) : -1;
}

void name_tensor(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  if (session()) session()->name(kind, name, tensor);
}

using MaybeTensor = std::optional<at::Tensor>;

Update update_of(double lr, double loss_scale, bool scale_overflow, const MaybeTensor& scale,
                 const MaybeTensor& found_inf) {
  return {lr, loss_scale, scale_overflow, scale.value_or(at::Tensor()), found_inf.value_or(at::Tensor())};
}

MaybeTensor gate_word() {
  at::Tensor word = session() ? session()->gate_word().word : at::Tensor();
  return word.defined() ? MaybeTensor(std::move(word)) : std::nullopt;
}

KeptUpdate& kept_update() {
  static auto* one = new KeptUpdate();  // leaked as the session
  return *one;
}

std::string room_for_update(const std::vector<at::Tensor>& overwritten) {
  const ObserverPause pause;
  return kept_update().make_room(overwritten);
}

/// The number of the word by which the device keeps what the update that has begun overwrites; 0: there is
/// none.
std::int64_t keep_update() {
  const GateWord it = session() ? session()->gate_word() : GateWord();
  const ObserverPause pause;
  if (it.word.defined()) kept_update().keep(it.word);
  return it.number;
}

void put_back_update() {
  const ObserverPause pause;
  const std::vector<at::Tensor> written = kept_update().put_back();
  if (session()) session()->may_be_put_back(written);
}

std::string before_update(double lr, double loss_scale, bool scale_overflow, const MaybeTensor& scale,
                          const MaybeTensor& found_inf, std::vector<at::Tensor> weights,
                          std::vector<std::int64_t> numbers, bool gradients_follow, bool takes_word,
                          std::vector<at::Tensor> to_come) {
  if (!session()) return "";
  Update update = update_of(lr, loss_scale, scale_overflow, scale, found_inf);
  update.takes_word = takes_word;
  update.gradients_to_come = std::move(to_come);
  return to_json(
      session()->before_update(update, {std::move(weights), std::move(numbers)}, gradients_follow));
}

std::string judge(double lr, double loss_scale, bool scale_overflow, const MaybeTensor& scale,
                  const MaybeTensor& found_inf) {
  if (!session()) return "";
  return to_json(session()->judge(update_of(lr, loss_scale, scale_overflow, scale, found_inf)));
}

std::string clipped(const at::Tensor& norm, std::vector<at::Tensor> weights,
                    std::vector<std::int64_t> numbers) {
  return session() ? to_json(session()->clipped(norm, {std::move(weights), std::move(numbers)})) : "";
}

void pause(bool begins) {
  if (!session()) return;
  begins ? session()->pause() : session()->resume();
}

bool put_back() {
  return !session() || session()->put_back();
}

std::string widen(const std::vector<at::Tensor>& tensors, bool try_only) {
  return session() ? session()->widen(tensors, try_only) : "the probe is not attached";
}

void replicas_differ(std::int64_t step, const std::vector<std::int64_t>& ranks, const std::string& tensor,
                     const std::string& text) {
  if (session()) session()->replicas_differ({step, {ranks.begin(), ranks.end()}, tensor, text});
}

void found(std::int64_t step, std::string kind, std::string label, std::string tensor, std::string file,
           std::string text) {
  if (session())
    session()->found(
        {step, 0, std::move(kind), std::move(label), std::move(tensor), std::move(file), std::move(text)});
}

/// What this kind of device has kernels of ours for: 1 to scan values, 2 to look at all gradients at once.
std::int64_t own_kernels(const std::string& device) {
  const c10::DeviceType type = c10::Device(device).type();
  return (&back_end_of(type) == &any_back_end() ? 0 : 1) + (looks_at_once(type) ? 2 : 0);
}

/// Why nothing of ours runs on an NVIDIA GPU; "" if it does.
std::string why_no_cuda_kernels() {
  return runs_cuda_kernels() ? "" : cuda_kernels_run().error().text();
}

std::string outlook() {
  return session() ? text_of(session()->outlook()) : "";
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
  m.def("begin_forward() -> str", &Of<&AttachSession::begin_forward>::op);
  m.def("between_steps() -> bool", &Of<&AttachSession::between_steps>::op);
  m.def("begin_aside() -> ()", &Of<&AttachSession::begin_aside>::op);
  m.def("computes_with(Tensor[] weights) -> ()", &Of<&AttachSession::computes_with>::op);
  m.def("loaded(Tensor[] weights) -> ()", &Of<&AttachSession::loaded>::op);
  m.def(
      "before_update(float lr, float loss_scale, bool scale_overflow, Tensor? scale, Tensor? found_inf, "
      "Tensor[] weights, int[] numbers, bool gradients_follow, bool takes_word, Tensor[] to_come) -> str",
      &before_update);
  m.def("gate_word() -> Tensor?", &gate_word);
  m.def("decides_together() -> ()", &Of<&AttachSession::decides_together>::op);
  m.def("room_for_update(Tensor[] overwritten) -> str", &room_for_update);
  m.def("keep_update() -> int", &keep_update);
  m.def("put_back_update() -> ()", &put_back_update);
  m.def("judge(float lr, float loss_scale, bool scale_overflow, Tensor? scale, Tensor? found_inf) -> str",
        &judge);
  m.def("setting_changed() -> ()", &Of<&AttachSession::setting_changed>::op);
  m.def("new_optimizer() -> ()", &Of<&AttachSession::new_optimizer>::op);
  m.def("after_update() -> str", &Of<&AttachSession::after_update>::op);
  m.def("note_scaled(Tensor scaled, Tensor loss) -> ()", &Of<&AttachSession::note_scaled>::op);
  m.def("begin_backward(Tensor[] roots, bool accumulates) -> ()", &Of<&AttachSession::begin_backward>::op);
  m.def("end_backward() -> ()", &Of<&AttachSession::end_backward>::op);
  m.def("inner_gradient() -> ()", &Of<&AttachSession::inner_gradient>::op);
  m.def("derived(int lane, Tensor[] weights, Tensor[] gradients, bool accumulated) -> ()",
        &Of<&AttachSession::derived>::op);
  m.def("derives(Tensor[] weights) -> str", &Of<&AttachSession::derives>::op);
  m.def("made_by_pass(Tensor result) -> ()", &Of<&AttachSession::made_by_pass>::op);
  m.def("gradients_cleared() -> ()", &Of<&AttachSession::gradients_cleared>::op);
  m.def("clipped(Tensor norm, Tensor[] weights, int[] numbers) -> str", &clipped);
  m.def("program_ends(str raised) -> str", &Of<&AttachSession::program_ends>::op);
  m.def("incidents() -> int", &Of<&AttachSession::incidents>::op);
  m.def("spikes() -> int", &Of<&AttachSession::spikes>::op);
  m.def("carried_on() -> int", &Of<&AttachSession::carried_on>::op);
  m.def("repeated() -> int", &Of<&AttachSession::repeated>::op);
  m.def("outlook() -> str", &outlook);
  m.def("muted() -> int", &Of<&AttachSession::muted>::op);
  m.def("step() -> int", &Of<&AttachSession::step>::op);
  m.def("loss() -> float", &Of<&AttachSession::loss>::op);
  m.def("steps_made() -> int", &Of<&AttachSession::steps_made>::op);
  m.def("standing_steps() -> int", &Of<&AttachSession::standing_steps>::op);
  m.def("standing_bytes() -> int", &Of<&AttachSession::standing_bytes>::op);
  m.def("capture(bool begins) -> ()", &Of<&AttachSession::capture>::op);
  m.def("graph_ran() -> ()", &Of<&AttachSession::graph_ran>::op);
  m.def("remember(Tensor[] buffers) -> ()", &Of<&AttachSession::remember>::op);
  m.def("put_back() -> bool", &put_back);
  m.def("forget() -> ()", &Of<&AttachSession::forget>::op);
  m.def("remembers() -> bool", &Of<&AttachSession::remembers>::op);
  m.def("spoiled_weight() -> str", &Of<&AttachSession::spoiled_weight>::op);
  m.def("widen(Tensor[] tensors, bool try_only) -> str", &widen);
  m.def("keep_wide(bool keep) -> ()", &Of<&AttachSession::keep_wide>::op);
  m.def("hashes_of_parts(Tensor[] tensors, int[] begins, int[] bytes) -> int[]", &hashes_of_parts);
  m.def("note_replicas(str ranks, str others) -> ()", &Of<&AttachSession::note_replicas>::op);
  m.def("replicas_differ(int step, int[] ranks, str tensor, str text) -> ()", &replicas_differ);
  m.def("non_finite(Tensor[] tensors) -> int[]", &non_finite);
  m.def("one_thread() -> ()", &one_thread_here);
  m.def("state_names() -> str", &Of<&AttachSession::state_names>::op);
  m.def("found(int step, str kind, str label, str tensor, str file, str text) -> ()", &found);
  m.def("largest(Tensor[] tensors) -> float[]", &largest);
  m.def("aside(bool begins) -> ()", &aside);
  m.def("feed_loss(Tensor[] weights) -> int[]", &Of<&feed_loss>::op);
  m.def("carried_over(Tensor[] gradients) -> int[]", &Of<&carried_over>::op);
  m.def("last_writer_of(Tensor memory) -> str", &Of<&AttachSession::last_writer_of>::op);
  m.def("zeros_made(Tensor[] gradients) -> str", &Of<&zeros_made>::op);
  m.def("own_kernels(str device) -> int", &own_kernels);
  m.def("why_no_cuda_kernels() -> str", &why_no_cuda_kernels);
  m.def("record_step() -> bool", &Of<&AttachSession::record_step>::op);
  m.def("watch_wanted() -> int", &Of<&AttachSession::watch_wanted>::op);
  m.def("watch_from(int step, int every) -> ()", &Of<&AttachSession::watch_from>::op);
  m.def("pause(bool begins) -> ()", &pause);
  m.def("note(str key, str value) -> ()", &Of<&AttachSession::note>::op);
  m.def("set_step(int number) -> ()", &Of<&AttachSession::set_step>::op);
  m.def("samples(str[] ids) -> ()", &Of<&AttachSession::set_samples>::op);
}

}  // namespace nanquest::attach

extern "C" {
/// A module's forward begins: `path` and `type` are UTF-8 and copied.
__attribute__((visibility("default"))) void nanquest_push(const char* path, const char* type) {
  nanquest::push_module(path, type);
}
/// What runs from now on belongs to this phase (1 forward, 3 optimizer), until the next call. Returns the
/// phase before.
__attribute__((visibility("default"))) int nanquest_phase(int phase) {
  return static_cast<int>(nanquest::set_phase(static_cast<nanquest::Phase>(phase)));
}
/// A pass of the program's models begins (1) or ends (0): the random numbers drawn in it belong to the step.
__attribute__((visibility("default"))) void nanquest_pass(int begins) {
  if (nanquest::attach::session()) nanquest::attach::session()->pass(begins != 0);
}
/// What runs from now on belongs to this micro-batch of a pipeline; below 0: to none.
__attribute__((visibility("default"))) void nanquest_micro_batch(int index) {
  if (nanquest::attach::session()) nanquest::attach::session()->set_told_micro_batch(index);
}
/// How Python finds out what holds some memory: returns an Owner::Kind, and writes its name.
__attribute__((visibility("default"))) void nanquest_owners(int (*find)(const void* memory, size_t bytes,
                                                                        char* name, size_t room)) {
  nanquest::attach::owner_finder() = find;
}
/// A module's forward ends.
__attribute__((visibility("default"))) void nanquest_pop() {
  nanquest::pop_module();
}
}
