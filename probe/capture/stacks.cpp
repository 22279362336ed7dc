#include "probe/capture/stacks.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <string_view>

namespace nanquest {
namespace {

bool is_plumbing(std::string_view file, std::string_view function) {
  for (const std::string_view part : {"libtorch", "libc10", "torch/include", "libc.so", "/c10/", "/ATen/"})
    if (file.find(part) != std::string_view::npos) return true;
  for (const std::string_view part :
       {"at::", "c10::", "torch::", "nanquest::ObserverSession", "nanquest::record_step", "nanquest::Stack",
        "std::", "__libc_start", "_start", "void at::", "nanquest::(anonymous namespace)::on_start"})
    if (function.substr(0, part.size()) == part) return true;
  return function.empty() || function == "??";
}

class TorchStack : public Stack {
 public:
  explicit TorchStack(std::shared_ptr<torch::CapturedTraceback> trace) : trace_(std::move(trace)) {}

  std::vector<std::string> symbolise() const override {
    std::vector<std::string> frames;
    try {
      const torch::SymbolizedTracebacks all = torch::symbolize({trace_.get()});
      if (all.tracebacks.empty()) return frames;
      for (const auto index : all.tracebacks[0]) {
        const auto& frame = all.all_frames[index];
        if (is_plumbing(frame.filename, frame.funcname)) continue;
        frames.push_back(frame.filename + ":" + std::to_string(frame.lineno) + " " + frame.funcname);
      }
    } catch (...) {
      frames.clear();
    }
    return frames;
  }

 private:
  std::shared_ptr<torch::CapturedTraceback> trace_;
};

}  // namespace

std::shared_ptr<Stack> Stack::gather() {
  try {
    return std::make_shared<TorchStack>(torch::CapturedTraceback::gather(true, false, true));
  } catch (...) {
    return nullptr;
  }
}

}  // namespace nanquest
