/// Room trainer/program: the parts that nanquest-trainer is made of, and the Trainer that they make.
///
///     Parts parts;
///     add_options(app, parts.list);                 // or set the fields
///     Result<std::unique_ptr<Trainer>> trainer = make_trainer(parts, listener);
///
/// Never: prints, parses a command line.
#pragma once

#include <memory>
#include <string>

#include "trainer/data/text_data.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/clips.h"
#include "trainer/optim/sgd.h"
#include "trainer/precision/device.h"
#include "trainer/text/text_task.h"

namespace nanquest::trainer {

enum class OptimizerKind : std::uint8_t { adamw, sgd };

/// All settings of a run, in one list that points into this.
struct Parts {
  std::string path, init_from;
  DataOptions data;
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

  Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
};

/// Checks the settings, opens the data, makes the model and sets the process-wide switches; what was left
/// open in `parts` (steps, device, formats) is filled in. Errors name the setting or the file.
Result<std::unique_ptr<Trainer>> make_trainer(Parts& parts, const Listener& listener);

}  // namespace nanquest::trainer
