// libnanquest_preload.so calls this before the program's main. From then on the probe waits for the first
// step.
#include <torch/version.h>

#include <cxxabi.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <typeinfo>

#include "probe/attach/options.h"
#include "probe/observe/observer.h"
#include "probe/program/attachment.h"
#include "probe/program/leaves.h"
#include "probe/program/reports.h"
#include "probe/step/one_line.h"

namespace nanquest::program {
namespace {

Attachment* attachment = nullptr;
std::terminate_handler before = nullptr;

bool begins(c10::ArrayRef<const c10::IValue> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const c10::IValue& input : inputs)
    if (input.isTensor() && Leaves::is_leaf(input.toTensor())) return attachment->begin();
  return false;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0') c = ' ';
  return text;
}

/// The uncaught error: "c10::Error: …".
std::string raised() {
  std::string name, text;
  if (const std::type_info* type = abi::__cxa_current_exception_type()) {
    int status = 0;
    char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
    name = readable ? readable : type->name();
    std::free(readable);
  }
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
  }
  return text.empty() ? name : name + ": " + one_line(text).substr(0, 200);
}

[[noreturn]] void terminates() {
  attachment->end(raised());
  if (before) before();
  std::abort();
}

}  // namespace
}  // namespace nanquest::program

/// Never throws, and never makes the program fail.
extern "C" __attribute__((visibility("default"))) void nanquest_program_begin() {
  using namespace nanquest;
  using namespace nanquest::program;
  try {
    note({{"torch", TORCH_VERSION}});
    const char* text = std::getenv("NANQUEST_PROGRAM");
    auto options = attach::parse_options(text ? text : "{}");
    if (!options) {
      note({{"off", options.error().text()}});
      return say("the probe is off: " + options.error().text());
    }
    options->probe.config["command"] = command_line();
    const auto asked = nlohmann::json::parse(text ? text : "{}");
    const Attachment::Stops stops{asked.value("on_incident", "") == "stop",
                                  asked.value("on_forecast", "") == "stop",
                                  asked.value("on_spike", "") == "stop"};
    options->skip_bad_updates = false;  // the program's optimizer can't be intercepted
    if (options->on_spike == attach::AttachOptions::OnSpike::skip)
      options->on_spike = attach::AttachOptions::OnSpike::record;
    attachment = new Attachment(std::move(options).value(), stops);
    before = std::set_terminate(terminates);
    listen_to_backward(*attachment);
    on_first_op(begins);
  } catch (const std::exception& problem) {
    note({{"off", problem.what()}});
    say(std::string("the probe is off: ") + problem.what());
  }
}

/// The program's main has returned.
extern "C" __attribute__((visibility("default"))) void nanquest_program_end() {
  if (nanquest::program::attachment) nanquest::program::attachment->end("");
}
