/// Room trainer/program: the parts that nanquest-trainer is made of, and the Trainer that they make.
///
///     Parts parts;                                  // or Parts parts(ModelKind::pretrained)
///     add_options(app, parts.list);                 // or set the fields
///     Result<std::unique_ptr<Trainer>> trainer = make_trainer(parts, listener);
///
/// Never: prints, parses a command line.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "trainer/data/token_data.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/clips.h"
#include "trainer/optim/sgd.h"
#include "trainer/precision/device.h"
#include "trainer/text/text_task.h"

namespace nanquest::trainer {

enum class ModelKind : std::uint8_t {
  gpt,         ///< made here, with fresh weights
  pretrained,  ///< a Hugging Face folder, that goes on with text
  yesno,       ///< the same of a LLaVA, that answers a question about pictures
};

enum class OptimizerKind : std::uint8_t { adamw, sgd };

/// All settings of a run, in one list that points into this.
struct Parts {
  ModelKind kind;
  std::string path, init_from;
  std::string folder;            ///< of a pretrained model
  PretrainedOptions pretrained;  ///< how it is trained
  std::int64_t context = 0;  ///< of it: targets of a window of .bin data, 0 = 1024 or what the model bears
  DataOptions data;
  std::string held_out_path;  ///< of pictures to evaluate on; "" = held out of `path`
  LoopConfig loop;
  NumericsOptions numerics;
  GptConfig model;
  TextOptions text;
  ScheduleOptions schedule;
  OptimizerKind optimizer = OptimizerKind::adamw;
  AdamWOptions adamw;
  SgdOptions sgd;  ///< its weight decay is that of `adamw`
  ClipSwitches clips;
  SettingList list;
  PretrainedModel* loaded = nullptr;  ///< of the trainer that was made of these parts, which owns it

  explicit Parts(ModelKind kind = ModelKind::gpt);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

/// The kind of the run whose settings these are.
ModelKind kind_of(const std::map<std::string, std::string>& settings);

/// Checks the settings, opens the data, makes the model and sets the process-wide switches; what was left
/// open in `parts` (steps, device, formats) is filled in. Errors name the setting or the file.
Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, const Listener& listener);

/// Writes what a run of a pretrained model has learned, the weights as they are now:
/// `run_dir`/checkpoints/adapter for PEFT, or `run_dir`/checkpoints/model for from_pretrained where all
/// weights trained. Returns the folder. The trainer that was made of `parts` must still be there.
Result<std::string> save_pretrained(const Parts& parts);

}  // namespace nanquest::trainer
