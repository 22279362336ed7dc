/// Room trainer/program: the parts of nanquest-trainer, and the Trainer made of them.
///
///     Parts parts;                                  // or Parts parts(ModelKind::pretrained)
///     add_options(app, parts.list);                 // or set the fields
///     Result<std::unique_ptr<Trainer>> trainer = make_trainer(parts, listener);
///
/// The room never prints and parses no command line.
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
  gpt,         ///< made here, with new weights
  pretrained,  ///< from a Hugging Face folder, trained on text
  yesno,       ///< the same for a LLaVA that answers a question about pictures
};

enum class OptimizerKind : std::uint8_t { adamw, sgd };

/// All settings of a run, in one list that points into this.
struct Parts {
  ModelKind kind;
  std::string path, init_from;
  std::string folder;            ///< of a pretrained model
  PretrainedOptions pretrained;  ///< how it is trained
  std::int64_t context = 0;      ///< for it: targets of a window of .bin data, 0 = 1024 or the model's limit
  DataOptions data;
  std::string held_out_path;  ///< pictures to evaluate on; "" = held out of `path`
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
  PretrainedModel* loaded = nullptr;  ///< of the trainer made from these parts, which owns it

  explicit Parts(ModelKind kind = ModelKind::gpt);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

/// The kind of the run with these settings.
ModelKind kind_of(const std::map<std::string, std::string>& settings);

/// Checks the settings, opens the data, makes the model and sets the process-wide switches; unset values in
/// `parts` (steps, device, formats) are filled in. Errors name the setting or the file.
Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, const Listener& listener);

/// Writes the result of a run of a pretrained model, with the current weights: `run_dir`/checkpoints/adapter
/// for PEFT, or `run_dir`/checkpoints/model for from_pretrained if all weights trained. Returns the folder.
/// The trainer that was made of `parts` must still exist.
Result<std::string> save_pretrained(const Parts& parts);

}  // namespace nanquest::trainer
