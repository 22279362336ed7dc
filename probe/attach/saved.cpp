#include "probe/attach/saved.h"

#include <nlohmann/json.hpp>

#include "probe/attach/session.h"
#include "probe/step/tensor_pass.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest::attach {

std::vector<std::int64_t> non_finite(const std::vector<at::Tensor>& tensors) {
  const ObserverPause pause;
  TensorPass pass;
  pass.begin();
  for (const at::Tensor& tensor : tensors) pass.add(tensor);
  pass.run(1);
  std::vector<std::int64_t> found(2 * tensors.size(), 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (pass.stats(i).non_finite == 0) continue;
    const auto stats = stats_of(tensors[i], /*hash=*/false);
    found[2 * i] = stats ? static_cast<std::int64_t>(stats->nan) : 0;
    found[2 * i + 1] = stats ? static_cast<std::int64_t>(stats->pos_inf + stats->neg_inf) : 1;
  }
  return found;
}

void AttachSession::note_damage(std::int64_t number) {
  const StateCheck::Names bad = check_.bad_now();
  check_.left_behind(bad);
  first_bad_.note(number, bad, [&](const std::string& name) -> std::string {
    if (number != step()) return "";
    for (const auto& [list, word] : tensors_.names().state())
      if (const std::string part = std::string(word) + " "; name.starts_with(part))
        return last_writer_of(list->named(name.substr(part.size())));
    return "";
  });
}

std::string AttachSession::state_names() {
  nlohmann::json all = nlohmann::json::array();
  safely("naming the state", [&] {
    hear(Hear::all);
    for (const auto& [list, word] : tensors_.names().state())
      for (std::size_t i = 0; i < list->size(); ++i) {
        const at::Tensor tensor = list->tensor(i).lock();
        if (!tensor.defined()) continue;
        const std::string name = std::string(word) + " " + list->name(i);
        const FirstBad::Since* since = first_bad_.of(name);
        all.push_back({{"kind", word},
                       {"name", list->name(i)},
                       {"elements", tensor.numel()},
                       {"memory", reinterpret_cast<std::uintptr_t>(tensor.storage().data())},
                       {"since_start", check_.since_beginning({name})},
                       {"since", since ? since->step : -1},
                       {"op", since ? since->op : last_writer_of(tensor)}});
      }
  });
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void AttachSession::found(ManifestFinding finding) {
  safely("noting a finding", [&] { (void)log_.found(std::move(finding)); });
}

}  // namespace nanquest::attach
