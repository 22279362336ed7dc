#include "trainer/program/parts.h"

#include <utility>
#include <vector>

#include "trainer/checkpoint/weights.h"
#include "trainer/data/open_tokens.h"

namespace nanquest::trainer {
namespace {

/// Device and formats of the run, as far as the machine has them; a line for each choice goes to `remarks`.
Status settle(Parts& parts, std::vector<std::string>& remarks) {
  const Result<at::Device> device = find_device(parts.numerics.device);
  if (!device) return device.error();
  Result<std::vector<std::string>> chosen = settle_formats(parts.numerics, *device, cuda_major(*device));
  if (!chosen) return chosen.error();
  remarks = std::move(*chosen);
  parts.loop.device = *device;
  parts.loop.amp = *parts.numerics.amp;
  return {};
}

constexpr std::pair<OptimizerKind, std::string_view> kOptimizers[] = {{OptimizerKind::adamw, "adamw"},
                                                                      {OptimizerKind::sgd, "sgd"}};

Result<std::unique_ptr<Optimizer>> make_optimizer(const Parts& parts, const Task& task) {
  SgdOptions sgd = parts.sgd;
  sgd.weight_decay = parts.adamw.weight_decay;
  Result<std::unique_ptr<Optimizer>> optimizer = parts.optimizer == OptimizerKind::sgd
                                                     ? make_sgd(task.parameters(), sgd)
                                                     : make_adamw(task.parameters(), parts.adamw);
  if (!optimizer) return optimizer.error();
  return with_clips(std::move(*optimizer), parts.clips, task.attention());
}

Status begin_with(const std::string& path, const Task& task) {
  NamedTensors weights = task.parameters();
  for (const auto& buffer : task.buffers()) weights.push_back(buffer);
  return load_weights(path, weights);
}

}  // namespace

Parts::Parts() {
  loop.steps = 0;
  for (const char* heading : {"Run", "Model", "Optimizer", "Precision", "Guard"}) list.group(heading);
  declare(list, path, data);
  declare(list, model);
  declare(list, schedule);
  list.group("Optimizer");
  list.add("optimizer", optimizer, "adamw or sgd", Words<OptimizerKind>(kOptimizers));
  declare(list, adamw);
  declare(list, sgd);
  declare(list, loop);
  declare(list, clips);
  declare(list, text);
  declare(list, numerics);
  declare(list, loop.scaler);
  list.group("Run");
  list.add("init-from", init_from,
           "begin with the weights of this safetensors file, as final and best are (a resume has its own)")
      .type_name = "FILE";
  list.incidental({"init-from"});
  list.check([this]() -> Status {
    if (clips.qk_clip == 0 || !model.qk_norm) return {};
    return Error{ErrorCode::usage,
                 "qk-clip has nothing to scale with qk-norm: a norm takes the scale out again",
                 "give one of the two"};
  });
}

Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, const Listener& listener) {
  if (parts.path.empty())
    return Error{ErrorCode::usage, "no data", "give --data FILE or FOLDER, or a --config that names it"};
  if (Status ok = parts.list.check(); !ok) return ok.error();
  LoopConfig& loop = parts.loop;
  parts.data.context = parts.model.context;
  parts.data.seed = loop.seed;
  parts.model.watch_logits = parts.clips.qk_clip > 0;
  Result<std::unique_ptr<TokenData>> data = open_tokens(parts.path, parts.data);
  if (!data) return data.error();
  if ((*data)->packed())
    return Error{ErrorCode::usage,
                 parts.path + ": rows of several texts, which this model does not keep apart",
                 "prepare it without --packing"};
  parts.model.vocabulary = (*data)->vocabulary();
  parts.model.context = (*data)->longest();
  std::vector<std::string> remarks;
  if (Status ok = settle(parts, remarks); !ok) return ok.error();
  loop.settings = parts.list.as_text();
  loop.training = parts.list.training();
  set_numerics(loop.seed, parts.numerics);
  Result<std::unique_ptr<Model>> model = make_gpt(parts.model, loop.seed, loop.device);
  if (!model) return model.error();
  std::unique_ptr<Task> task = make_text_task(std::move(*model), std::move(*data), parts.text);
  if (!parts.init_from.empty() && !loop.resume) {
    if (Status ok = begin_with(parts.init_from, *task); !ok) return ok.error();
    remarks.push_back("weights: from " + parts.init_from);
  }
  loop.steps = steps_of(loop, *task);
  loop.schedule = parts.schedule.over(loop.steps);
  Result<std::unique_ptr<Optimizer>> optimizer = make_optimizer(parts, *task);
  if (!optimizer) return optimizer.error();
  Result<std::unique_ptr<Trainer>> trainer =
      Trainer::create(loop, std::move(task), std::move(*optimizer), listener);
  // What refuses to begin is told in one line.
  if (trainer && listener.on_message)
    for (const std::string& remark : remarks) listener.on_message(remark);
  return trainer;
}

}  // namespace nanquest::trainer
