/// Room trainer/cli: the program around the library. Everything that prints is here.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <string>

#include "probe/base/result.h"
#include "trainer/data/text_data.h"
#include "trainer/loop/config.h"
#include "trainer/model/gpt.h"

namespace nanquest::trainer {

/// What a person can set, as given; `loop_config` turns it into what the library wants.
struct Settings {
  std::string data, run_dir = "nanquest-run", device = "cpu", amp_dtype = "fp32", policy = "fallback_fp32";
  std::string level = "guard", norm = "pre", activation = "gelu";
  GptConfig model{};
  LoopConfig loop{};
  std::int64_t epochs = 0, data_eval_every = 20;
  double warmup_ratio = 0.03;
  int threads = 0;
  bool deterministic = false, tf32 = false, json = false;
  std::vector<std::string> injections;

  Settings() { loop.steps = 0; }
};

/// Declares every option of nanquest-trainer on `app`, bound to `settings`.
void declare_options(CLI::App& app, Settings& settings);

/// Options as "name = value", for the manifest.
std::map<std::string, std::string> settings_as_text(const CLI::App& app);

/// Fills model and loop from the words of `settings`; needs the data's size for epochs. Errors name the
/// setting.
Status complete(Settings& settings, const TextData& data);

/// The data options that follow from `settings`.
DataOptions data_options(const Settings& settings);

/// Turns "nan-loss@40", "inf-grad@40x5", "nan-loss@40:amp" into an Injection.
Result<Injection> parse_injection(const std::string& text);

}  // namespace nanquest::trainer
