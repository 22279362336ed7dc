#include "trainer/cli/sample.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trainer/cli/command_line.h"
#include "trainer/cli/report.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"
#include "trainer/text/sampling.h"

namespace nanquest::trainer {
namespace {

using Tokens = std::vector<std::int64_t>;

struct SampleWishes {
  std::string folder, adapter, prompt;
  SamplingOptions sampling;
  NumericsOptions numerics;
  bool json = false;
  SettingList list;

  SampleWishes() {
    for (const char* heading : {"Run", "Model", "Sampling", "Precision"}) list.group(heading);
    list.group("Model");
    list.add("model", folder, "Hugging Face model folder on this machine").type_name = "FOLDER";
    list.add("adapter", adapter, "with the adapter in this folder, as finetune and PEFT write it").type_name =
        "FOLDER";
    list.group("Run");
    list.add("tokens", prompt,
             "the prompt: its tokens with blanks between; without it each line of stdin is one");
    list.add("json", json, "print an object for each prompt: prompt, tokens, ended");
    declare(list, sampling);
    declare(list, numerics);
  }
};

Result<Tokens> tokens_of(const std::string& text, std::int64_t vocabulary) {
  Tokens tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int64_t token = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc{} || end != word.data() + word.size() || token < 0 || token >= vocabulary)
      return Error{
          ErrorCode::usage,
          "prompt: " + word.substr(0, 40) + " is not one of " + std::to_string(vocabulary) + " tokens",
          "nanquest sample takes text"};
    tokens.push_back(token);
  }
  if (tokens.empty())
    return Error{ErrorCode::usage, "a prompt without a token",
                 "give at least the token that texts begin with"};
  return tokens;
}

std::string joined(const Tokens& tokens) {
  std::string text;
  for (const std::int64_t token : tokens) text.append(text.empty() ? "" : " ").append(std::to_string(token));
  return text;
}

int sample_as(SampleWishes& w) {
  if (w.folder.empty())
    return fail({ErrorCode::usage, "no model", "give --model FOLDER, a Hugging Face model on this machine"});
  if (Status s = w.list.check(); !s) return fail(s.error());
  const Result<at::Device> device = find_device(w.numerics.device);
  if (!device) return fail(device.error());
  if (const auto chosen = settle_formats(w.numerics, *device, cuda_major(*device)); !chosen)
    return fail(chosen.error());
  set_numerics(w.sampling.seed, w.numerics);
  PretrainedOptions options;
  options.adapter = w.adapter;
  options.frozen = true;
  options.device = *device;
  Result<std::unique_ptr<PretrainedModel>> model = load_pretrained(w.folder, options);
  if (!model) return fail(model.error());
  const DecoderConfig& config = (*model)->config();
  const NextLogits next = [&](const at::Tensor& tokens) {
    const at::NoGradGuard no_grad;
    const AutocastGuard autocast(device->type(), *w.numerics.amp);
    return (*model)->forward(tokens.to(*device), /*training=*/false).select(0, 0).select(0, -1);
  };
  const auto answer = [&](const std::string& text) -> int {
    const Result<Tokens> prompt = tokens_of(text, config.vocabulary);
    if (!prompt) return fail(prompt.error());
    if (static_cast<std::int64_t>(prompt->size()) >= config.context)
      return fail({ErrorCode::usage,
                   "a prompt of " + std::to_string(prompt->size()) + " tokens, the model bears " +
                       std::to_string(config.context),
                   "shorten it"});
    const Result<Tokens> added = go_on(*prompt, next, config.end_tokens, config.context, w.sampling);
    if (!added) return fail(added.error());
    const bool ended = !added->empty() && std::find(config.end_tokens.begin(), config.end_tokens.end(),
                                                    added->back()) != config.end_tokens.end();
    const std::string line =
        w.json ? nlohmann::json{{"prompt", *prompt}, {"tokens", *added}, {"ended", ended}}.dump()
               : joined(*added);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    return 0;
  };
  if (!w.prompt.empty()) return answer(w.prompt);
  for (std::string line; std::getline(std::cin, line);)
    if (const int code = answer(line); code != 0) return code;
  return 0;
}

}  // namespace

int sample_command(int count, char** arguments) {
  CLI::App app(
      "Goes on with prompts of tokens, by a Hugging Face model and what was learned of it. The whole text is "
      "computed "
      "again for each token.",
      "nanquest-trainer sample");
  app.footer(
      "Example:\n  nanquest-trainer sample --model models/tiny-llama --adapter "
      "runs/chats/checkpoints/adapter --tokens "
      "'1 306 4658'\n"
      "  nanquest sample --model models/tiny-llama --adapter runs/chats/checkpoints/adapter 'The loss'    "
      "the same with "
      "text\n"
      "Exit codes: 0 done, 2 usage, 3 bad file.");
  SampleWishes wishes;
  add_options(app, wishes.list);
  std::vector<std::string> words(arguments, arguments + count);
  std::reverse(words.begin(), words.end());  // in the order of CLI11
  try {
    app.parse(words);
  } catch (const Refused& refused) {
    return fail(refused.error);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    const std::string text = e.what();
    return fail({ErrorCode::usage, text.substr(0, text.find('\n')),
                 "nanquest-trainer sample --help lists the options"});
  }
  return sample_as(wishes);
}

}  // namespace nanquest::trainer
