// huggingface_worker CASES.json: loads models, computes, trains and saves as reference_test.py requests, and
// writes the numbers that it compares with transformers and PEFT. Ends with 1 and a line for each refused
// case.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/optim/adamw.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

constexpr double kLr = 1e-3;

/// Throws the error of a Result.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().text());
}

PretrainedOptions options_of(const json& c) {
  PretrainedOptions o;
  o.adapter = c.value("adapter", "");
  o.lora.on = c.contains("lora");
  if (o.lora.on) {
    o.lora.r = c["lora"].value("r", 8);
    o.lora.alpha = c["lora"].value("alpha", 32.0);
    o.lora.dropout = 0;
    o.lora.targets = c["lora"].value("targets", "");
  }
  o.checkpointing = c.value("checkpointing", false);
  if (c.value("written", false)) o.attention = AttentionForm::written;
  return o;
}

/// One loss for each [batch, time + 1] of `windows`, with a step of AdamW after it; the first one's gradients
/// as well.
void train(PretrainedModel& model, const at::Tensor& windows, const at::Tensor& pixels,
           NamedTensors& results) {
  const auto optimizer = must(make_adamw(model.parameters(), {.weight_decay = 0.1}));
  std::vector<double> losses;
  for (std::int64_t step = 0; step < windows.size(0); ++step) {
    const at::Tensor window = windows[step];
    const std::int64_t time = window.size(1) - 1;
    const at::Tensor targets = window.narrow(1, 1, time).contiguous();
    const DecoderInput input{.tokens = window.narrow(1, 0, time).contiguous(), .pixels = pixels};
    at::Tensor loss =
        next_token_loss(model.forward(input, true), targets) / static_cast<double>(count_targets(targets));
    for (const auto& [name, p] : model.parameters()) at::Tensor(p).mutable_grad() = at::Tensor();
    loss.backward();
    losses.push_back(loss.item<double>());
    if (step == 0)
      for (const auto& [name, p] : model.parameters())
        if (p.grad().defined()) results.emplace_back("grad." + name, p.grad().clone());
    optimizer->step(kLr);
  }
  results.emplace_back("losses", at::tensor(losses, at::kDouble));
}

void run(const json& c) {
  const auto model = must(load_pretrained(c.at("folder"), options_of(c)));
  const SafetensorsFile given = must(read_safetensors(c.at("inputs")));
  NamedTensors results;
  const DecoderInput input{.tokens = given.find("tokens"),
                           .positions = given.find("positions"),
                           .texts = given.find("texts"),
                           .pixels = given.find("pixels"),
                           .last = c.value("last", 0)};
  results.emplace_back("logits", model->forward(input, false).detach().clone());
  if (const at::Tensor windows = given.find("windows"); windows.defined()) {
    train(*model, windows, input.pixels, results);
    results.emplace_back("logits_after", model->forward(input, false).detach().clone());
  }
  std::optional<at::ScalarType> format;
  if (c.value("format", "") == "bf16") format = at::kBFloat16;
  if (c.contains("save")) must(model->save(c["save"], format));
  if (c.contains("save_adapter")) must(model->save_adapter(c["save_adapter"]));
  must(write_safetensors(c.at("results"), results, {}));
}

int run_all(const std::string& path) {
  std::ifstream in(path);
  int code = 0;
  for (const json& c : json::parse(in)) {
    try {
      run(c);
    } catch (const std::exception& e) {
      std::cerr << c.value("name", "?") << ": " << e.what() << '\n';
      code = 1;
    }
  }
  return code;
}

}  // namespace
}  // namespace nanquest::trainer

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: huggingface_worker CASES.json\n";
    return 2;
  }
  at::set_num_threads(1);
  return nanquest::trainer::run_all(argv[1]);
}
