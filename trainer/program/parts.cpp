#include "trainer/program/parts.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "trainer/checkpoint/weights.h"
#include "trainer/data/bin_data.h"
#include "trainer/data/open_tokens.h"
#include "trainer/data/picture_data.h"
#include "trainer/data/prepared_data.h"
#include "trainer/yesno/yesno_task.h"

namespace nanquest::trainer {
namespace {

Group& ranks_of(const Parts& parts) {
  return parts.loop.ranks != nullptr ? *parts.loop.ranks : nobody_else();
}

/// Device and formats of the run, as far as the machine has them; adds a line for each choice to `remarks`.
Status settle(Parts& parts, std::vector<std::string>& remarks) {
  std::string name = parts.numerics.device;
  // Each rank on a machine has its own device.
  if (Group& ranks = ranks_of(parts); name == "cuda" && ranks.local_size() > 1 && at::hasCUDA())
    name += ":" + std::to_string(ranks.local_rank() % std::max(1, static_cast<int>(at::getNumGPUs())));
  const Result<at::Device> device = find_device(name);
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

struct MadeTask {
  std::unique_ptr<Task> task;
  PretrainedModel* loaded = nullptr;
};

Result<MadeTask> make_gpt_task(Parts& parts) {
  parts.data.context = parts.model.context;
  parts.model.watch_logits = parts.clips.qk_clip > 0;
  Result<std::unique_ptr<TokenData>> data = open_tokens(parts.path, parts.data);
  if (!data) return data.error();
  if ((*data)->packed())
    return Error{ErrorCode::usage,
                 parts.path + ": rows of several texts, which this model does not keep apart",
                 "prepare it without --packing, or give it to nanquest-trainer finetune"};
  parts.model.vocabulary = (*data)->vocabulary();
  parts.model.context = (*data)->longest();
  Result<std::unique_ptr<Model>> model = make_gpt(parts.model, parts.loop.seed, parts.loop.device);
  if (!model) return model.error();
  return MadeTask{make_text_task(std::move(*model), std::move(*data), parts.text)};
}

/// Tokens for `model`: prepared with its tokenizer, or .bin, whose tokenizer is not known.
Result<std::unique_ptr<TokenData>> tokens_for(const PretrainedModel& model, const Parts& parts) {
  if (PreparedData::is(parts.path)) {
    Result<std::unique_ptr<PreparedData>> data = PreparedData::open(parts.path, parts.data);
    if (!data) return data.error();
    if (Status s = (*data)->made_for(parts.folder); !s) return s.error();
    return std::unique_ptr<TokenData>(std::move(*data));
  }
  if (!BinData::is(parts.path))
    return Error{std::filesystem::exists(parts.path) ? ErrorCode::usage : ErrorCode::bad_file,
                 parts.path + ": no tokens: neither prepared data nor .bin",
                 "nanquest prepare --model " + parts.folder + " --data FILE.jsonl --out DIR makes some"};
  DataOptions options = parts.data;
  options.context = parts.context > 0 ? parts.context : std::min<std::int64_t>(1024, model.config().context);
  if (options.vocabulary == 0) options.vocabulary = model.config().vocabulary;
  Result<std::unique_ptr<BinData>> data = BinData::open(parts.path, options);
  if (!data) return data.error();
  return std::unique_ptr<TokenData>(std::move(*data));
}

bool adapts(const Parts& parts) {
  return parts.pretrained.lora.on || !parts.pretrained.adapter.empty();
}

/// Folder for the result: among the checkpoints, so that it moves with an earlier run.
std::string learned_folder(const Parts& parts) {
  return parts.loop.run_dir + "/checkpoints/" + (adapts(parts) ? "adapter" : "model");
}

/// A run must not start from the result of an earlier run in its own directory, because that is moved away.
Status check_sources(const Parts& parts) {
  std::error_code ec;
  for (const std::string* source : {&parts.folder, &parts.pretrained.adapter})
    for (const char* name : {"adapter", "model"})
      if (!source->empty() &&
          std::filesystem::equivalent(parts.loop.run_dir + "/checkpoints/" + name, *source, ec))
        return Error{ErrorCode::usage,
                     *source + ": is what the earlier run in " + parts.loop.run_dir + " has learned",
                     "give another --run-dir: a run moves the earlier one in its directory away"};
  return {};
}

/// The model to train, checked against what the run writes.
Result<std::unique_ptr<PretrainedModel>> make_pretrained(Parts& parts) {
  if (parts.folder.empty())
    return Error{ErrorCode::usage, "no model", "give --model FOLDER, a Hugging Face model on this machine"};
  if (!parts.loop.rehearsal)
    if (Status s = check_sources(parts); !s) return s.error();
  parts.pretrained.device = parts.loop.device;
  parts.pretrained.seed = parts.loop.seed;
  return load_pretrained(parts.folder, parts.pretrained);
}

Result<MadeTask> make_pretrained_task(Parts& parts) {
  Result<std::unique_ptr<PretrainedModel>> made = make_pretrained(parts);
  if (!made) return made.error();
  PretrainedModel* model = made->get();
  Result<std::unique_ptr<TokenData>> data = tokens_for(*model, parts);
  if (!data) return data.error();
  TextOptions text = parts.text;
  text.vocabulary = model->config().vocabulary;
  text.longest = model->config().context;
  const LogitsOf logits = [model](const NamedTensors& batch, bool training) {
    DecoderInput input{.tokens = batch[0].second};
    if (batch.size() > 2) {
      input.positions = batch[2].second;
      input.texts = batch[3].second;
    }
    return model->forward(input, training);
  };
  return MadeTask{make_text_task(std::move(*made), std::move(*data), text, logits), model};
}

/// Pictures with a question that the model's tokenizer made.
Result<std::unique_ptr<PictureData>> pictures_for(const Parts& parts, const std::string& path,
                                                  std::int64_t held_out_every) {
  if (!PreparedData::is(path))
    return Error{std::filesystem::exists(path) ? ErrorCode::usage : ErrorCode::bad_file,
                 path + ": no pictures of nanquest prepare",
                 "nanquest prepare --model " + parts.folder + " --data FILE.jsonl --out DIR makes some"};
  DataOptions options = parts.data;
  options.eval_every = held_out_every;
  Result<std::unique_ptr<PictureData>> data = PictureData::open(path, options);
  if (!data) return data.error();
  if (Status s = (*data)->made_for(parts.folder); !s) return s.error();
  return data;
}

Result<MadeTask> make_yesno(Parts& parts) {
  Result<std::unique_ptr<PretrainedModel>> made = make_pretrained(parts);
  if (!made) return made.error();
  PretrainedModel* model = made->get();
  if (!model->config().images) return sees_no_pictures(*model);
  const bool separate = !parts.held_out_path.empty();
  Result<std::unique_ptr<PictureData>> data =
      pictures_for(parts, parts.path, separate ? 0 : parts.data.eval_every);
  if (!data) return data.error();
  std::unique_ptr<PictureData> held_out;
  if (separate) {
    Result<std::unique_ptr<PictureData>> other = pictures_for(parts, parts.held_out_path, 0);
    if (!other) return other.error();
    held_out = std::move(*other);
  }
  Result<std::unique_ptr<Task>> task =
      make_yesno_task(std::move(*made), std::move(*data), std::move(held_out));
  if (!task) return task.error();
  return MadeTask{std::move(*task), model};
}

Result<MadeTask> make_task(Parts& parts) {
  switch (parts.kind) {
    case ModelKind::gpt:
      return make_gpt_task(parts);
    case ModelKind::yesno:
      return make_yesno(parts);
    case ModelKind::pretrained:
      break;
  }
  return make_pretrained_task(parts);
}

/// Defaults of the original yes/no program where nanquest has others.
void begin_as_yesno(Parts& parts) {
  parts.pretrained.lora.targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj,fc1,fc2,out_proj";
  parts.pretrained.checkpointing = true;
  parts.loop.eval_every = -1;
  parts.loop.eval_samples = -1;
}

void declare_pictures(SettingList& list, Parts& parts) {
  list.group("Run");
  list.add("data", parts.path,
           "folder of nanquest prepare, of pictures with labels; or their lines, then that is called first")
      .type_name = "DIR|FILE";
  list.add("val-data", parts.held_out_path, "another one, to evaluate on (default: held out of --data)")
      .type_name = "DIR|FILE";
  list.add("holdout-every", parts.data.eval_every,
           "every n-th picture is held out, where there is no --val-data (0 = none)");
  list.incidental({"data", "val-data", "holdout-every"});  // compared by fingerprint
  list.check([&parts] { return check(parts.data); });
}

Status begin_with(const std::string& path, const Task& task) {
  NamedTensors weights = task.parameters();
  for (const auto& buffer : task.buffers()) weights.push_back(buffer);
  return load_weights(path, weights);
}

}  // namespace

Parts::Parts(ModelKind model_kind) : kind(model_kind) {
  loop.steps = 0;
  for (const char* heading : {"Run", "Model", "Optimizer", "Precision", "Guard"}) list.group(heading);
  if (kind == ModelKind::yesno) {
    begin_as_yesno(*this);
    declare_pictures(list, *this);
  } else {
    declare(list, path, data, /*takes_text=*/kind == ModelKind::gpt);
  }
  if (kind == ModelKind::gpt) {
    declare(list, model);
  } else {
    schedule.peak = 2e-5;
    list.group("Model");
    list.add("model", folder, "Hugging Face model folder on this machine").type_name = "FOLDER";
    declare(list, pretrained);
    list.incidental({"model"});  // compared by fingerprint
  }
  if (kind == ModelKind::pretrained) {
    list.add("context", context,
             "tokens a window of a .bin predicts (0 = 1024, or what the model bears if that is less)");
    list.check([this]() -> Status {
      if (context >= 0) return {};
      return Error{ErrorCode::usage, "context must not be negative", "0 leaves it to the model"};
    });
  }
  declare(list, schedule);
  list.group("Optimizer");
  list.add("optimizer", optimizer, "adamw or sgd", Words<OptimizerKind>(kOptimizers));
  declare(list, adamw);
  declare(list, sgd);
  declare(list, loop);
  declare(list, clips, /*shows_heads=*/kind == ModelKind::gpt);
  if (kind != ModelKind::yesno) declare(list, text);
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
  list.check([this]() -> Status {
    const bool by_host = clips.module_clip > 0 || clips.qk_clip > 0 || clips.zclip || clips.spam;
    if (loop.tape == 0 || !by_host) return {};
    return Error{
        ErrorCode::usage,
        "module-clip, zclip, spam and qk-clip compute on the host what a tape can't compute again for "
        "another learning rate",
        "leave them out, or the tape: nanquest-trainer rehearse needs none"};
  });
}

ModelKind kind_of(const std::map<std::string, std::string>& settings) {
  if (settings.contains("val-data")) return ModelKind::yesno;
  const auto found = settings.find("model");
  return found != settings.end() && !found->second.empty() ? ModelKind::pretrained : ModelKind::gpt;
}

namespace {

struct Made {
  std::unique_ptr<Task> task;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::string> remarks;
};

Error no_data(const Parts& parts) {
  if (parts.kind == ModelKind::gpt)
    return {ErrorCode::usage, "no data", "give --data FILE or FOLDER, or a --config that names it"};
  return {ErrorCode::usage, "no data",
          "nanquest prepare --model " + (parts.folder.empty() ? "FOLDER" : parts.folder) +
              " --data FILE.jsonl --out DIR makes some; then --data DIR"};
}

/// All parts of a trainer, on this process alone.
Result<Made> make_pieces(Parts& parts) {
  if (parts.path.empty()) return no_data(parts);
  if (Status ok = parts.list.check(); !ok) return ok.error();
  LoopConfig& loop = parts.loop;
  parts.data.seed = loop.seed;
  Made pieces;
  if (Status ok = settle(parts, pieces.remarks); !ok) return ok.error();
  set_numerics(loop.seed, parts.numerics);
  Result<MadeTask> made = make_task(parts);
  if (!made) return made.error();
  pieces.task = std::move(made->task);
  Task* task = pieces.task.get();
  parts.loaded = made->loaded;
  loop.settings = parts.list.as_text();
  loop.training = parts.list.training();
  if (!parts.init_from.empty() && !loop.resume) {
    if (Status ok = begin_with(parts.init_from, *task); !ok) return ok.error();
    pieces.remarks.push_back("weights: from " + parts.init_from);
  }
  loop.steps = steps_of(loop, *task);
  if (loop.eval_every < 0) loop.eval_every = steps_in_pass(loop, *task);
  if (loop.eval_samples < 0) loop.eval_samples = task->eval_samples();
  loop.schedule = parts.schedule.over(loop.steps);
  Result<std::unique_ptr<Optimizer>> optimizer = make_optimizer(parts, *task);
  if (!optimizer) return optimizer.error();
  pieces.optimizer = std::move(*optimizer);
  return pieces;
}

/// As many threads as a machine's ranks have processors; with one rank LibTorch's own choice.
void share_processors(const Parts& parts) {
  Group& ranks = ranks_of(parts);
  if (ranks.alone() || parts.numerics.threads > 0) return;
  const int processors = processors_of_rank(ranks);
  at::set_num_threads(processors);
}

}  // namespace

Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, const Listener& listener) {
  share_processors(parts);
  Result<Made> made = make_pieces(parts);
  Group& ranks = ranks_of(parts);
  if (Status s = agreed(ranks, made ? Status() : made.error()); !s) return s.error();
  Result<std::unique_ptr<Trainer>> trainer =
      Trainer::create(parts.loop, std::move(made->task), std::move(made->optimizer), listener);
  // A refusal to start is reported in one line.
  if (trainer && listener.on_message && ranks.first())
    for (const std::string& remark : made->remarks) listener.on_message(remark);
  return trainer;
}

Result<std::string> save_pretrained(const Parts& parts) {
  const PretrainedModel& model = *parts.loaded;
  const std::string folder = learned_folder(parts);
  const Status saved = adapts(parts) ? model.save_adapter(folder) : model.save(folder);
  if (!saved) return saved.error();
  return folder;
}

}  // namespace nanquest::trainer
